import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { rotateSecret } from '../../db/endpoints/secrets';
import { generateWebhookSecret } from '../../db/endpoints/webhook-secret';
import { startTestService, type TestService } from '../support/service';
import type { TestApi } from '../support/api';
import { needs } from '../support/needs';
import { addEndpoint } from '../support/notifications';
import { testTemporal } from '../support/temporal';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';
import type { Received, WebhookReceiver } from '../support/webhook-receiver';
import { buildVerifier, LANGUAGES, verifyIn, type Case } from './verifiers';

// What the partner guide prints, run on what the real service sends: every language, both forms of the signature.

const temporal = testTemporal();
let service: TestService;
let api: TestApi;
let receiver: WebhookReceiver;
let keys: string;
let folder: string;
/** The secrets in the order of their lives: `next` signs beside `old`, `last` replaces both at once. */
const secrets = { old: '', next: generateWebhookSecret(), last: generateWebhookSecret() };
let before: Received;
let during: Received;
let after: Received;

beforeAll(async () => {
  folder = await temporaryDirectory('verifiers');
  service = await startTestService(temporal);
  ({ api, receiver, keys } = service);
  const partner = { partnerId: api.partnerId, url: receiver.url, keyRing: keys };
  const { endpointId, secret } = await addEndpoint(api.database, partner);
  secrets.old = secret;
  before = await receive();
  await rotate(endpointId, 3600, secrets.next);
  during = await receive();
  await rotate(endpointId, 0, secrets.last);
  after = await receive();
}, 300_000);

afterAll(async () => {
  await service.close();
  await removeDirectory(folder);
});

/** Has the service send a test notification. */
async function receive(): Promise<Received> {
  const answer = await api.call({ path: '/v1/notifications/test?lender=lender_a' });
  const received = receiver.received.at(-1);
  if (answer.body.data?.status !== 'delivered' || received === undefined) throw new Error('not delivered');
  return received;
}

async function rotate(endpointId: string, overlapSeconds: number, secret: string): Promise<void> {
  const ring = parseKeyRing(keys);
  await api.database.db.transaction((tx) =>
    rotateSecret(tx, endpointId, { overlapSeconds, seal: (place) => ring.seal(secret, place) }),
  );
}

/** The test event as the partner guide shows it: its headers, its body, and the secret named below it. */
function guideSample(): { received: Received; secret: string } {
  const guide = readFileSync(join(__dirname, '../../docs/partner-guide.md'), 'utf8');
  const [, head = '', body = '', after = ''] =
    /```http\nPOST \S+ HTTP\/1\.1\n([^`]*service-test: true[^`]*)\n\n(\{.*\})\n```\n([\s\S]*)/.exec(guide) ??
    [];
  const headers = Object.fromEntries(head.split('\n').map((line) => line.split(': ')));
  const [secret = ''] = /whsec_[\w+/=]+/.exec(after) ?? [];
  return { received: { headers, body, atMs: 0 }, secret };
}

test('the test event that the partner guide shows has the headers and the fields that arrive', () => {
  const { headers, body } = guideSample().received;
  expect(Object.keys(headers)).toEqual(Object.keys(before.headers));
  for (const name of ['content-type', 'accept-encoding', 'user-agent', 'service-test', 'content-length'])
    expect([name, headers[name]]).toEqual([name, before.headers[name]]);
  const fields = (text: string) => {
    const event = JSON.parse(text);
    return [Object.keys(event), Object.keys(event.data)];
  };
  expect(fields(body)).toEqual(fields(before.body));
});

const forms = ['Service-Signature', 'Standard Webhooks'] as const;

for (const [language, program] of Object.entries(LANGUAGES))
  needs(...program.needs)(language, () => {
    beforeAll(() => buildVerifier(folder, program), 120_000);

    describe.each(forms)('%s', (form) => {
      const verify = ({ headers, body }: Received, known: readonly string[], changes: Partial<Case> = {}) => {
        const now = Number(headers['webhook-timestamp']);
        return verifyIn(folder, language, { headers, body, secrets: known, form, now, ...changes });
      };
      const at = (received: Received, seconds: number) => ({
        now: Number(received.headers['webhook-timestamp']) + seconds,
      });

      test('verifies what arrived, up to five minutes after it was signed', async () => {
        expect(await verify(before, [secrets.old])).toBe('verified');
        expect(await verify(before, [secrets.old], at(before, 300))).toBe('verified');
        expect(await verify(before, [secrets.old], at(before, 301))).toBe('refused');
        expect(await verify(before, [secrets.old], at(before, -301))).toBe('refused');
      });

      test('verifies the test event that the partner guide shows', async () => {
        const { received, secret } = guideSample();
        expect(await verify(received, [secret])).toBe('verified');
      });

      test('refuses a tampered body, and a stranger', async () => {
        const tampered = { body: before.body.replace('lender_a', 'lender_b') };
        expect(tampered.body).not.toBe(before.body);
        expect(await verify(before, [secrets.old], tampered)).toBe('refused');
        expect(await verify(before, [secrets.old], { body: '' })).toBe('refused');
        expect(await verify(before, [generateWebhookSecret()])).toBe('refused');
      });

      test('accepts either secret while both are alive, and neither old one afterwards', async () => {
        expect(await verify(during, [secrets.old])).toBe('verified');
        expect(await verify(during, [secrets.next])).toBe('verified');
        expect(await verify(after, [secrets.old, secrets.next])).toBe('refused');
        expect(await verify(after, [secrets.next, secrets.last])).toBe('verified');
      });

      test('refuses headers that say nothing', async () => {
        const name = form === 'Service-Signature' ? 'service-signature' : 'webhook-signature';
        for (const value of ['', 'v1', 'v1=,v1,', 't=,v1=00', 't=x,v1=zz', 'v0,AAAA']) {
          expect(await verify(before, [secrets.old], { headers: { ...before.headers, [name]: value } })).toBe(
            'refused',
          );
        }
      });
    });
  });
