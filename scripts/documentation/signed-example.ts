import { signEd25519, hmacSha256 } from '../../outbound/sender';
import { webhookKeysExamples } from '../../contracts/webhook-endpoint';
import { testEventExamples } from '../../contracts/webhook-event';
import { signatureHeaders } from '../../domain/webhook';

/** They sign the example in the documentation and nothing else. The public key is the one that the contract shows. */
const SECRET = 'whsec_YW4gZXhhbXBsZSBzZWNyZXQsIHVzZWQgbm93aGVyZSE=';
const PRIVATE_KEY = 'whsk_X3myUcsaKmXt6j8UGxpWbHe51OnenNwZ05VjIO6SbZc=';
const PUBLIC_KEY = webhookKeysExamples.one.value.data.keys[0]?.public_key ?? '';

const event = testEventExamples.lender_a.value;
const body = JSON.stringify(event);
const signed = signatureHeaders({
  body,
  eventId: event.event_id,
  timestamp: Date.parse(event.created_at) / 1_000,
  secrets: [SECRET],
  keyPairs: [{ publicKey: PUBLIC_KEY, privateKey: PRIVATE_KEY }],
  hmac: hmacSha256,
  sign: signEd25519,
});

/** The partner guide with the test event of the contract, signed, where it shows an HTTP request with the header `service-test`. */
export function withSignedRequest(guide: string): string {
  const values: Record<string, string> = { 'content-length': String(Buffer.byteLength(body)) };
  for (const [name, value] of Object.entries(signed)) values[name.toLowerCase()] = value;
  return guide.replace(/```http\n[^`]*service-test: true[^`]*```/, (block) =>
    block
      .replaceAll(/^([\w-]+): .*$/gm, (line, name: string) =>
        name in values ? `${name}: ${values[name]}` : line,
      )
      .replace(/^\{.*\}$/m, body),
  );
}

/** The page on the verifiers with the same event in its command. */
export function withSignedCommand(page: string): string {
  return page
    .replace(/(?<=^export SECRETS=')[^']*/m, SECRET)
    .replace(/(?<=^export SERVICE_SIGNATURE=')[^']*/m, signed['Service-Signature'])
    .replace(/(?<=^export NOW=)\d+/m, signed['webhook-timestamp'])
    .replace(/(?<=^printf '%s' ')[^']*/m, body);
}
