import { connect, type Socket } from 'node:net';
import { until } from '../support/delivery';
import { exchange, expectBad, hostileTarget, openConnections, openTls, pause, quoteBytes } from './raw';

/** Clients that close or reset their connections half-way. Those that dawdle: slow.system.ts. */

const target = hostileTarget();

test('a client that closes its side while it is served counts as gone', async () => {
  const { answers, closed, tookMs } = await exchange(target.api, '', {
    untilClosed: true,
    drive: (socket) => socket.end(quoteBytes(target.api)),
  });
  expect(closed).toBe(true);
  expect(tookMs).toBeLessThan(3_000);
  for (const answer of answers) expect(answer.status).toBe(200);
});

test.each([
  ['after half a head', 'POST /v1/finance-quote HTTP/1.1\r\nHost: a\r\n'],
  ['after half a request line', 'POST /v1/fin'],
])('a client that ends %s is refused at once', async (_what, bytes) => {
  const { answers, closed, tookMs } = await exchange(target.api, '', {
    untilClosed: true,
    drive: (socket) => socket.end(bytes),
  });
  expectBad(answers[0]);
  expect(closed).toBe(true);
  expect(tookMs).toBeLessThan(3_000);
});

test('clients that vanish at any moment leave no fault and no connection behind', async () => {
  const whole = quoteBytes(target.api);
  for (let at = 0; at <= whole.length; at += 20) {
    const tcp = connect(target.api.port, '127.0.0.1');
    openTls(target.api, { socket: tcp }).once('secureConnect', function (this: Socket) {
      this.write(whole.subarray(0, at));
      setTimeout(() => (at % 40 === 0 ? tcp.resetAndDestroy() : this.destroy()), at % 7);
    });
  }
  await pause(1_500);
  expect(await target.api.quote()).toMatchObject({ status: 200 });
  // That of the quote stays.
  await until(async () => (await openConnections(target.api)) === 1, 'all others are closed');
});
