import { gzipSync } from 'node:zlib';
import { deliveryWorkflowId } from '../../workflows/names';
import { timersOf } from '../delivery/time';
import { answering } from '../outbound/partner';
import { until } from '../support/delivery';
import { hostileRows, rawReceiver, receiver } from './rows';
import { HERE } from './scene';

const { row, scene, temporal } = hostileRows();

const answer = (status: number, headers = '', body = '') =>
  answering(`HTTP/1.1 ${status} X\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`);

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

let asked: unknown;
row(
  'a gzip bomb is a success, and never unpacked',
  async ({ host, register }) => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const { port } = await receiver((request, response) => {
      asked = request.headers['accept-encoding'];
      response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': bomb.length }).end(bomb);
    });
    await register(`https://${host}:${port}/`);
  },
  (seen) => {
    expect(seen).toMatchObject({ state: 'delivered', words: ['delivered'] });
    expect(seen.attempts[0]?.answer).toBe('(compressed, though identity was asked for)');
    expect(asked).toBe('identity');
  },
);

const elsewhere = { visits: 0 };
for (const status of [301, 302, 307, 308]) {
  row(
    `${status} is \`redirect\` and never followed, not even to https`,
    async ({ host, register }) => {
      const other = await receiver((_request, response) => {
        elsewhere.visits += 1;
        response.end();
      });
      const { port } = await rawReceiver(answer(status, `Location: https://${host}:${other.port}/\r\n`));
      await register(`https://${host}:${port}/`);
    },
    (seen) => {
      expect(seen).toMatchObject({ state: 'failed', reason: 'exhausted', endpoint: 'active' });
      expect(seen.words).toEqual(['redirect', 'redirect', 'redirect']);
      expect(seen.attempts[0]).toMatchObject({ status, address: HERE });
      expect(elsewhere.visits).toBe(0);
    },
  );
}

for (const target of [
  'https://169.254.169.254',
  'http://169.254.169.254',
  'https://127.0.0.1',
  'https://[::1]',
]) {
  row(
    `a redirect to ${target} is the same, without a second connection`,
    async ({ host, register }, { trap }) => {
      const location = `Location: ${target}:${trap.port}/latest/meta-data/\r\n`;
      const { port } = await rawReceiver(answer(302, location));
      await register(`https://${host}:${port}/`);
    },
    (seen, { trap }) => {
      expect(seen.words).toEqual(['redirect', 'redirect', 'redirect']);
      expect(new Set(seen.attempts.map(({ address }) => address))).toEqual(new Set([HERE]));
      expect(trap.connections()).toBe(0);
    },
  );
}

for (const status of [400, 401, 403, 404, 500]) {
  row(
    `${status} fails, is kept with its answer, and the ladder goes on to its end`,
    async ({ host, register }) => {
      const { port } = await rawReceiver(answer(status, '', 'oops'));
      await register(`https://${host}:${port}/`);
    },
    (seen) => {
      expect(seen).toMatchObject({ state: 'failed', reason: 'exhausted', endpoint: 'active' });
      expect(seen.attempts).toHaveLength(3);
      for (const attempt of seen.attempts)
        expect(attempt).toMatchObject({ failure: 'http_status', status, answer: 'oops' });
    },
  );
}

const RETRY_AFTER = [
  { what: 'seconds', value: () => '120', leastMs: 120_000, mostMs: 120_000 },
  {
    what: 'a date',
    value: () => new Date(Date.now() + 600_000).toUTCString(),
    leastMs: 500_000,
    mostMs: 600_000,
  },
  { what: 'less than the ladder', value: () => '0', leastMs: 1_000, mostMs: 2_000 },
  {
    what: 'a date that has passed',
    value: () => 'Sat, 21 Nov 2020 12:00:00 GMT',
    leastMs: 1_000,
    mostMs: 2_000,
  },
  { what: 'a negative number', value: () => '-5', leastMs: 1_000, mostMs: 2_000 },
  { what: 'garbage', value: () => 'soon', leastMs: 1_000, mostMs: 2_000 },
  { what: 'absurd', value: () => '99999999999999', leastMs: 36_000_000, mostMs: 36_000_000 },
];
for (const [at, status] of [
  [37, 429],
  [38, 503],
] as const) {
  test.each(RETRY_AFTER)(
    `row ${at}: after ${status} with Retry-After ($what) the wait is the later of it and the ladder, at most 10 h`,
    async ({ value, leastMs, mostMs }) => {
      const { host, register, send } = await scene().partner();
      const { port } = await rawReceiver((socket) => answer(status, `Retry-After: ${value()}\r\n`)(socket));
      await register(`https://${host}:${port}/`);
      const { notificationId } = await send('status');
      const handle = temporal.env.client.workflow.getHandle(deliveryWorkflowId(notificationId, 1));
      await until(
        async () => (await scene().look(notificationId)).words.includes('http_status'),
        'an attempt',
      );
      await until(async () => (await timersOf(handle)).length > 0, 'its wait');
      const [waitMs] = await timersOf(handle);
      expect(waitMs).toBeGreaterThanOrEqual(leastMs);
      expect(waitMs).toBeLessThanOrEqual(mostMs);
      expect((await scene().look(notificationId)).endpoint).toBe('active');
    },
  );
}

row(
  'interim answers alone are no answer',
  async ({ host, register }) => {
    const { port } = await rawReceiver((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n');
    });
    await register(`https://${host}:${port}/`);
  },
  (seen) => expect(seen).toMatchObject({ state: 'failed', words: ['timeout', 'timeout', 'timeout'] }),
);

for (const status of [204, 299]) {
  row(
    `interim answers before ${status} are passed over, and it is a success`,
    async ({ host, register }) => {
      const { port } = await rawReceiver((socket) => {
        socket.write('HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n');
        socket.write(`HTTP/1.1 ${status} X\r\n${status === 204 ? '' : 'Content-Length: 0\r\n'}\r\n`);
      });
      await register(`https://${host}:${port}/`);
    },
    (seen) => {
      expect(seen).toMatchObject({ state: 'delivered', words: ['delivered'] });
      expect(seen.attempts[0]?.status).toBe(status);
    },
  );
}
