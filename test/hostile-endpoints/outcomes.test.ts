import { networkInterfaces } from 'node:os';
import { freePort } from '../../dev/ports';
import { answering, certificateFor, closeLater, EXPIRED, startDeafServer } from '../outbound/partner';
import { HERE, hostileRows, LIMITS, rawReceiver, receiver, type Attempt, type Seen } from './scene';

/** What becomes of a delivery to some hostile endpoints, through a real worker. Every kind is tried in test/outbound, by the sender. */
const { row, scene } = hostileRows();
const METADATA =
  'HTTP/1.1 302 Found\r\nLocation: https://169.254.169.254/latest/meta-data/\r\nContent-Length: 0\r\n\r\n';

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
  'a redirect into the private network, which is not followed,': {
    failure: 'redirect',
    port: () => rawReceiver(answering(METADATA)),
    first: { status: 302, address: HERE },
  },
  'an expired certificate': {
    failure: 'tls',
    port: async () =>
      receiver(() => (requests.toUntrusted += 1), await certificateFor('*.partner.test', EXPIRED)),
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

/** Every attempt was refused before any connection, and told to the operators with the endpoint's id. */
async function expectBlocked(seen: Seen, said = 'is not a public address'): Promise<void> {
  const words = ['blocked_address', 'blocked_address', 'blocked_address'];
  expect(seen).toMatchObject({ state: 'failed', reason: 'exhausted', words });
  const answer = expect.stringContaining(said);
  for (const attempt of seen.attempts) expect(attempt).toMatchObject({ address: null, status: null, answer });
  // On a busy machine there are others, on a start that had to be repeated.
  const alerts = seen.warnings.filter((line) => line.includes('leads to where webhooks may not go'));
  expect(alerts).toHaveLength(3);
  expect(alerts[0]).toMatch(/"endpointId":"whe_/);
  expect(await scene().counted('blocked_address')).toBeGreaterThanOrEqual(3);
  expect(scene().trap.connections()).toBe(0);
}

const [own] = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
for (const addresses of [
  ['127.0.0.1'],
  ['169.254.169.254'],
  ['fc00::1'],
  ['::ffff:127.0.0.1'],
  [own?.address ?? '::1'],
  ['1.1.1.1', '::1'],
  [HERE, '127.0.0.1'],
]) {
  row(
    `a name that resolves to ${addresses.join(' and ')} is \`blocked_address\`, alerts, and is never connected to`,
    async ({ host, register, resolve }, { trap }) => {
      resolve(() => addresses);
      await register(`https://${host}:${trap.port}/`);
    },
    (seen) => expectBlocked(seen),
  );
}

// A URL that registration refuses (test/outbound/names.test.ts), in a row that was written by hand.
row(
  'a URL that no registration takes is refused by the connector, too',
  async ({ register }, { trap }) => register(`https://127.0.0.1:${trap.port}/`),
  (seen) => expectBlocked(seen, 'ip_address'),
);

const rebound = { requests: 0 };
row(
  'a name that is rebound is checked at each connection, and the address connected to is the checked one',
  async ({ host, register, resolve }) => {
    const { port } = await receiver((_request, response) => {
      rebound.requests += 1;
      response.writeHead(500).end();
    });
    // By turns: the questions of an attempt see one of the two, the next attempt the other.
    resolve((type) => (type === 'AAAA' ? [] : [rebound.requests === 0 ? HERE : '127.0.0.1']));
    await register(`https://${host}:${port}/`);
  },
  (seen) => {
    expect(seen.words).toEqual(['http_status', 'blocked_address', 'blocked_address']);
    expect(seen.attempts.map(({ address }) => address)).toEqual([HERE, null, null]);
    expect(rebound.requests).toBe(1);
  },
);

test('each kind is counted, and none has reached a private address', async () => {
  const kinds = ['connect', 'timeout', 'tls', 'redirect', 'blocked_address'];
  const counts = await Promise.all(kinds.map((kind) => scene().counted(kind)));
  expect(counts.every((count) => count > 0)).toBe(true);
  expect(scene().trap.connections()).toBe(0);
});
