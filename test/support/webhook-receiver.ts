import { createHmac, createPublicKey, verify } from 'node:crypto';
import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { Webhook } from 'standardwebhooks';
import { watchWires, type Wire } from '../../dev/receivers';
import { createTestTls } from '../../testbed/tls';

export interface Received {
  readonly headers: IncomingMessage['headers'];
  readonly path: string;
  /** By its header `webhook-id`. */
  readonly eventId: string;
  readonly body: string;
  readonly atMs: number;
}

/**
 * What the receiver does with its nth request (from 0): a status, headers with it, or a handler of its own; null when it has answered
 * on the wire.
 */
export type Behaviour = (
  nth: number,
  request: Received,
  wire: Wire,
) =>
  | null
  | number
  | { status: number; headers?: Record<string, string>; body?: string }
  | ((response: ServerResponse) => void);

/** A partner's HTTPS endpoint, on loopback unless told otherwise, under a public-looking name and an authority of its own. */
export type WebhookReceiver = Awaited<ReturnType<typeof startWebhookReceiver>>;

export const RECEIVER_NAME = 'hooks.partner.example';

/** The setting that lets a worker reach these ports under that name. */
export const localTargets = (...ports: readonly number[]): string =>
  ports.map((port) => `${RECEIVER_NAME}:${port}`).join(',');

export async function startWebhookReceiver(
  behaviour: Behaviour = () => 200,
  at: { host: string; port: number } = { host: '127.0.0.1', port: 0 },
) {
  const names = [RECEIVER_NAME, `*.${RECEIVER_NAME}`].map((value) => ({ type: 'dns', value }) as const);
  const { ca, cert, key } = await createTestTls(names);
  const received: Received[] = [];
  let behave = behaviour;
  const server = createServer({ cert, key }, (request, response) => {
    const receive = (body: string) => {
      const { headers, url: path = '' } = request;
      const one = { headers, path, eventId: String(headers['webhook-id']), body, atMs: performance.now() };
      const what = behave(received.push(one) - 1, one, wireOf(request.socket as TLSSocket));
      if (what === null) return;
      if (typeof what === 'function') what(response);
      else if (typeof what === 'number') response.writeHead(what).end();
      else response.writeHead(what.status, what.headers).end(what.body);
    };
    // What breaks off has not been received.
    void text(request).then(receive, () => undefined);
  });
  const wireOf = watchWires(server);
  await new Promise<void>((resolve) => server.listen(at.port, at.host, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://${RECEIVER_NAME}:${port}/webhooks`,
    port,
    ca,
    received,
    behave: (next: Behaviour) => void (behave = next),
    /** Forgets what it has received, and answers 200 from now on. */
    reset: () => {
      received.length = 0;
      behave = () => 200;
    },
    /** Settings that let a worker reach it. */
    environment: { ENVIRONMENT: 'development', WEBHOOK_LOCAL_TARGETS: localTargets(port) } as Record<
      string,
      string
    >,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Verifies both forms of the signature over the raw bytes. @throws when either does not hold. */
export function verifySignatures(request: Received, secret: string): void {
  new Webhook(secret).verify(request.body, request.headers as Record<string, string>);
  if (!serviceSignatureHolds(request, secret)) throw new Error('Service-Signature does not hold');
}

/** What a receiver that knows only this secret makes of it: `accepts` by both forms, `refuses` by both, or they differ. */
export function judgeSignatures(request: Received, secret: string): 'accepts' | 'refuses' | 'differ' {
  let standard = true;
  try {
    new Webhook(secret).verify(request.body, request.headers as Record<string, string>);
  } catch {
    standard = false;
  }
  if (standard !== serviceSignatureHolds(request, secret)) return 'differ';
  return standard ? 'accepts' : 'refuses';
}

/** What a receiver without a secret makes of it, that knows these public keys; by Node's own Ed25519. */
export function judgePublicKeys(
  { headers, body }: Pick<Received, 'headers' | 'body'>,
  publicKeys: readonly string[],
): 'accepts' | 'refuses' {
  const [id, timestamp] = ['webhook-id', 'webhook-timestamp'].map((name) => String(headers[name]));
  const signed = Buffer.from(`${id}.${timestamp}.${body}`);
  const signatures = String(headers['webhook-signature'])
    .split(' ')
    .filter((one) => one.startsWith('v1a,'))
    .map((one) => Buffer.from(one.slice('v1a,'.length), 'base64'));
  const holds = publicKeys.some((publicKey) => {
    const x = Buffer.from(publicKey.replace(/^whpk_/, ''), 'base64').toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    return signatures.some((one) => verify(null, signed, key, one));
  });
  return holds ? 'accepts' : 'refuses';
}

function serviceSignatureHolds({ headers, body }: Received, secret: string): boolean {
  const [t = '', ...signatures] = String(headers['service-signature']).split(',');
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const expected = `v1=${createHmac('sha256', key)
    .update(`${t.slice(2)}.${body}`)
    .digest('hex')}`;
  return t.startsWith('t=') && signatures.includes(expected);
}
