import { setTimeout as delay } from 'node:timers/promises';
import { answering, startDeafServer, closeLater } from '../outbound/partner';
import { freePort } from '../support/free-port';
import { hostileRows, rawReceiver } from './rows';
import { HERE, LIMITS, type Seen } from './scene';

const { row, scene } = hostileRows();

/** The whole ladder failed in this way, each attempt in its own row, and the test's place in the month is free again. */
function expectExhausted(seen: Seen, failure: string, times = 3): void {
  expect(seen).toMatchObject({
    state: 'failed',
    reason: 'exhausted',
    reservedMonth: null,
    words: Array.from({ length: times }, () => failure),
    endpoint: 'active',
  });
}

function expectAllAbout({ attempts }: Seen, limitMs: number): void {
  for (const { durationMs } of attempts) {
    expect(durationMs).toBeGreaterThan(limitMs - 30);
    expect(durationMs).toBeLessThan(limitMs + 1_500);
  }
}

row(
  'a refused connection is `connect`, and the ladder goes on to its end',
  async ({ host, register }) => void (await register(`https://${host}:${await freePort()}/`)),
  (seen) => {
    expectExhausted(seen, 'connect');
    expect(seen.attempts[0]).toMatchObject({ status: null, address: null, answer: 'ECONNREFUSED' });
  },
);

row(
  'no route is `connect`',
  async ({ host, resolve, register }) => {
    // The discard prefix, which leads nowhere.
    resolve((type) => (type === 'A' ? [] : ['100::1']));
    await register(`https://${host}/`);
  },
  (seen) => expectExhausted(seen, 'connect'),
);

row(
  'a connection that hangs is given up at its limit',
  async ({ host, register }) => {
    const { port } = closeLater(await startDeafServer(HERE));
    await register(`https://${host}:${port}/`);
  },
  (seen) => {
    expectExhausted(seen, 'connect');
    expectAllAbout(seen, LIMITS.connectMs);
  },
);

row(
  'an endpoint that accepts and never answers is given up at the limit for headers',
  async ({ host, register }) => {
    const { port } = await rawReceiver(() => {});
    await register(`https://${host}:${port}/`);
  },
  (seen) => {
    expectExhausted(seen, 'timeout');
    expectAllAbout(seen, LIMITS.headersMs);
    expect(seen.attempts[0]?.address).toBe(HERE);
  },
);

row(
  'a body that drips after a 2xx is a success, decided at the headers',
  async ({ host, register }) => {
    const { port } = await rawReceiver((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n');
      const drip = setInterval(() => socket.write('x'), 100);
      socket.once('close', () => clearInterval(drip));
    });
    await register(`https://${host}:${port}/`);
  },
  (seen) => {
    expect(seen).toMatchObject({ state: 'delivered', words: ['delivered'] });
    expect(seen.attempts[0]?.answer).toMatch(/^x{1,50}$/);
  },
);

row(
  'headers that drip are `timeout` at the limit',
  async ({ host, register }) => {
    const { port } = await rawReceiver((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const drip = setInterval(() => socket.write('X: y\r\n'), 100);
      socket.once('close', () => clearInterval(drip));
    });
    await register(`https://${host}:${port}/`);
  },
  (seen) => {
    expectExhausted(seen, 'timeout');
    expectAllAbout(seen, LIMITS.headersMs);
  },
);

const resets: { ids: (string | undefined)[] } = { ids: [] };
row(
  'a reset before the status is `reset`, and the next attempt carries the same event id',
  async ({ host, register }) => {
    const { port } = await rawReceiver((socket, reset, bytes) => {
      const id = /^webhook-id: (\S+)/im.exec(bytes.toString('latin1'))?.[1];
      if (id === undefined) return;
      if (resets.ids.push(id) < 3) reset();
      else socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
    });
    await register(`https://${host}:${port}/`);
  },
  (seen) => {
    expect(seen).toMatchObject({ state: 'delivered', words: ['reset', 'reset', 'delivered'] });
    expect(resets.ids).toHaveLength(3);
    expect(new Set(resets.ids).size).toBe(1);
  },
);

row(
  'a reset in the body of a 2xx is a success',
  async ({ host, register }) => {
    const { port } = await rawReceiver((socket, reset) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf');
      void delay(100).then(reset);
    });
    await register(`https://${host}:${port}/`);
  },
  (seen) => expect(seen).toMatchObject({ state: 'delivered', words: ['delivered'] }),
);

for (const [what, rcode] of [
  ['NXDOMAIN', 3],
  ['SERVFAIL', 2],
] as const) {
  row(
    `${what} is \`dns\`, and the ladder goes on`,
    async ({ host, register, resolve }) => {
      resolve(() => ({ rcode }));
      await register(`https://${host}/`);
    },
    (seen) => expectExhausted(seen, 'dns'),
  );
}

row(
  'a DNS that does not answer is `dns` at its limit; one that recovers is asked anew',
  async ({ host, register, resolve }) => {
    const { port } = await rawReceiver(answering('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
    let silentUntilMs: number | undefined;
    resolve((type) => {
      silentUntilMs ??= performance.now() + LIMITS.dnsMs + 200;
      if (performance.now() < silentUntilMs) return 'silence';
      return type === 'A' ? [HERE] : [];
    });
    await register(`https://${host}:${port}/`);
  },
  ({ state, words, attempts }) => {
    expect(state).toBe('delivered');
    expect([words[0], words.at(-1)]).toEqual(['dns', 'delivered']);
    expect(attempts[0]?.durationMs).toBeGreaterThan(LIMITS.dnsMs - 30);
    expect(attempts[0]?.durationMs).toBeLessThan(LIMITS.dnsMs + 1_500);
  },
);

test('none of them was an alert, and each kind is counted', async () => {
  const kinds = ['connect', 'timeout', 'reset', 'dns'];
  const counts = await Promise.all(kinds.map((kind) => scene().counted(kind)));
  expect(counts.every((count) => count > 0)).toBe(true);
  expect(scene().trap.connections()).toBe(0);
});
