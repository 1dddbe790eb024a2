import { createSecureContext } from 'node:tls';
import { deliveryWorkflowId } from '../../workflows/names';
import { timersOf } from '../delivery/time';
import {
  answering,
  certificateFor,
  closeLater,
  dripping,
  EXPIRED,
  startDeafServer,
  VALID,
} from '../outbound/partner';
import { until } from '../support/delivery';
import { freePort } from '../../dev/ports';
import { HERE, hostileRows, LIMITS, rawReceiver, receiver, type Attempt } from './scene';

/**
 * The outcome of each kind of hostile endpoint at the end of the ladder, through a real worker. Every spelling of each kind is
 * tried in test/outbound, against the sender alone.
 */
const { row, scene, temporal } = hostileRows();
const NAME = '*.partner.test';

const answer = (status: number, headers = '', body = '') =>
  answering(`HTTP/1.1 ${status} X\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`);

interface Exhausted {
  readonly failure: string;
  readonly port: () => Promise<{ readonly port: number }>;
  readonly first?: Partial<Attempt>;
  /** How long each attempt takes. */
  readonly limitMs?: number;
}
const requests = { toUntrusted: 0 };
const EXHAUSTED: Readonly<Record<string, Exhausted>> = {
  'a refused connection': {
    failure: 'connect',
    port: async () => ({ port: await freePort() }),
    first: { status: null, address: null, answer: 'ECONNREFUSED' },
  },
  'a connection that hangs': {
    failure: 'connect',
    port: async () => closeLater(await startDeafServer(HERE)),
    limitMs: LIMITS.connectMs,
  },
  'an endpoint that never answers': {
    failure: 'timeout',
    port: () => rawReceiver(() => {}),
    first: { address: HERE },
    limitMs: LIMITS.headersMs,
  },
  'headers that drip': {
    failure: 'timeout',
    port: () => rawReceiver(dripping('HTTP/1.1 200 OK\r\n', 'X: y\r\n', 100)),
    limitMs: LIMITS.headersMs,
  },
  'a 500': {
    failure: 'http_status',
    port: () => rawReceiver(answer(500, '', 'oops')),
    first: { status: 500, answer: 'oops' },
  },
  'an expired certificate': {
    failure: 'tls',
    port: async () => receiver(() => (requests.toUntrusted += 1), await certificateFor(NAME, EXPIRED)),
    first: { answer: expect.stringContaining('CERT_HAS_EXPIRED') as never },
  },
};
for (const [what, { failure, port, first = {}, limitMs }] of Object.entries(EXHAUSTED)) {
  row(
    `${what} is \`${failure}\` at each attempt, and the test's unit of the month is free again`,
    async ({ host, register }) => register(`https://${host}:${(await port()).port}/`),
    (seen) => {
      expect(seen).toMatchObject({ state: 'failed', reason: 'exhausted', reservedMonth: null });
      expect(seen).toMatchObject({ words: [failure, failure, failure], endpoint: 'active' });
      expect(seen.attempts[0]).toMatchObject(first);
      for (const { durationMs } of limitMs === undefined ? [] : seen.attempts) {
        expect(durationMs).toBeGreaterThan((limitMs ?? 0) - 30);
        expect(durationMs).toBeLessThan((limitMs ?? 0) + 1_500);
      }
      expect(requests.toUntrusted).toBe(0);
    },
  );
}

row(
  'a redirect into the private network is not followed',
  async ({ host, register }, { trap }) => {
    const location = `Location: https://127.0.0.1:${trap.port}/latest/meta-data/\r\n`;
    await register(`https://${host}:${(await rawReceiver(answer(302, location))).port}/`);
  },
  (seen, { trap }) => {
    expect(seen).toMatchObject({ reason: 'exhausted', words: ['redirect', 'redirect', 'redirect'] });
    expect(new Set(seen.attempts.map(({ address }) => address))).toEqual(new Set([HERE]));
    expect(trap.connections()).toBe(0);
  },
);

row(
  'a body that drips after a 2xx is a success, decided at the headers',
  async ({ host, register }) => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n';
    await register(`https://${host}:${(await rawReceiver(dripping(head, 'x', 100))).port}/`);
  },
  (seen) => {
    expect(seen).toMatchObject({ state: 'delivered', words: ['delivered'] });
    expect(seen.attempts[0]?.answer).toMatch(/^x{1,50}$/);
  },
);

let drained: Promise<unknown>;
row(
  'an endless body is a success; 8 KiB of it are kept, and the socket is destroyed',
  async ({ host, register }) => {
    let gone: () => void = () => {};
    drained = new Promise<void>((resolve) => (gone = resolve));
    const { port } = await receiver((_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(16_384)));
      };
      response.on('drain', more).on('close', gone);
      more();
    });
    await register(`https://${host}:${port}/`);
  },
  async (seen) => {
    expect(seen).toMatchObject({ state: 'delivered', words: ['delivered'] });
    expect(seen.attempts[0]?.answer).toBe('x'.repeat(8_192));
    await drained;
  },
);

const ids: string[] = [];
row(
  'a reset before the status is `reset`, and the next attempt has the same event id',
  async ({ host, register }) => {
    const { port } = await rawReceiver((socket, reset, bytes) => {
      const id = /^webhook-id: (\S+)/im.exec(bytes.toString('latin1'))?.[1];
      if (id === undefined) return;
      if (ids.push(id) < 3) reset();
      else socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
    });
    await register(`https://${host}:${port}/`);
  },
  (seen) => {
    expect(seen).toMatchObject({ state: 'delivered', words: ['reset', 'reset', 'delivered'] });
    expect([ids.length, new Set(ids).size]).toEqual([3, 1]);
  },
);

row(
  'each attempt checks the certificate anew: valid, then expired, then valid again',
  async ({ host, register }) => {
    const certificates = [VALID, EXPIRED, VALID].map((validity) => certificateFor(NAME, validity));
    const contexts = (await Promise.all(certificates)).map((one) => createSecureContext(one));
    let handshakes = 0;
    let answered = 0;
    const { port } = await receiver(
      (_request, response) => response.writeHead((answered += 1) === 1 ? 500 : 200).end(),
      { SNICallback: (_name, done) => done(null, contexts[handshakes++]) },
    );
    await register(`https://${host}:${port}/`);
  },
  (seen) => expect(seen).toMatchObject({ state: 'delivered', words: ['http_status', 'tls', 'delivered'] }),
);

row(
  'a DNS that does not answer is `dns` at its limit; one that recovers is asked again',
  async ({ host, register, resolve }) => {
    const { port } = await rawReceiver(answer(200));
    let silentUntilMs: number | undefined;
    resolve((type) => {
      silentUntilMs ??= performance.now() + LIMITS.dnsMs + 200;
      if (performance.now() < silentUntilMs) return 'silence';
      return type === 'A' ? [HERE] : [];
    });
    await register(`https://${host}:${port}/`);
  },
  ({ state, words, attempts }) => {
    expect([state, words[0], words.at(-1)]).toEqual(['delivered', 'dns', 'delivered']);
    expect(attempts[0]?.durationMs).toBeGreaterThan(LIMITS.dnsMs - 30);
    expect(attempts[0]?.durationMs).toBeLessThan(LIMITS.dnsMs + 1_500);
  },
);

test.each<[number, number, () => string, number, number]>([
  [37, 429, () => '120', 120_000, 120_000],
  [37, 429, () => new Date(Date.now() + 600_000).toUTCString(), 500_000, 600_000],
  [37, 429, () => 'soon', 1_000, 2_000],
  [37, 429, () => '99999999999999', 36_000_000, 36_000_000],
  [38, 503, () => '120', 120_000, 120_000],
])(
  'row %d: after %d the wait is the later of Retry-After and the ladder, at most 10 h (case %#)',
  async (_row, status, value, leastMs, mostMs) => {
    const { host, register, send } = await scene().partner();
    const { port } = await rawReceiver((socket) => answer(status, `Retry-After: ${value()}\r\n`)(socket));
    await register(`https://${host}:${port}/`);
    const { notificationId } = await send('status');
    const handle = temporal.env.client.workflow.getHandle(deliveryWorkflowId(notificationId, 1));
    await until(async () => (await scene().look(notificationId)).words.includes('http_status'), 'an attempt');
    await until(async () => (await timersOf(handle)).length > 0, 'its wait');
    const [waitMs] = await timersOf(handle);
    expect(waitMs).toBeGreaterThanOrEqual(leastMs);
    expect(waitMs).toBeLessThanOrEqual(mostMs);
    expect((await scene().look(notificationId)).endpoint).toBe('active');
  },
);

test('each kind is counted, and none has reached a private address', async () => {
  const kinds = ['connect', 'timeout', 'reset', 'dns', 'tls', 'redirect', 'http_status'];
  const counts = await Promise.all(kinds.map((kind) => scene().counted(kind)));
  expect(counts.every((count) => count > 0)).toBe(true);
  expect(scene().trap.connections()).toBe(0);
});
