import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../testbed/until';
import { certificateFor, closeAll, HOST, post, rawServed, served } from './partner';

afterEach(closeAll);

/** A connection rests for 250 ms after its first answer, and for less after later ones. */
const rested = () => sleep(300);

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

test('a connection is used again after a success, and its name is not looked up again', async () => {
  const { receiver, sender } = await served((_request, response) => response.end('ok'));
  for (let sent = 0; sent < 5; sent += 1) {
    expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ kind: 'delivered' });
    await rested();
  }
  expect(receiver.connections()).toBe(1);
  expect(sender.questions).toEqual([`A ${HOST}`, `AAAA ${HOST}`]);
});

test('a connection that has not rested is not used', async () => {
  const { receiver, sender } = await served((_request, response) => response.end('ok'));
  await sender.send(post(receiver.url));
  await sender.send(post(receiver.url));
  expect(receiver.connections()).toBe(2);
});

test('the rest of a connection becomes shorter', async () => {
  const { receiver, sender } = await served((_request, response) => response.end('ok'));
  for (let sent = 0; sent < 12; sent += 1) {
    await sender.send(post(receiver.url));
    await sleep(Math.max(250 / (sent + 1), 25) + 30);
  }
  expect(receiver.connections()).toBe(1);
});

test('endpoints do not share connections, even at one host', async () => {
  const { receiver, sender } = await served((_request, response) => response.end());
  for (const endpointId of ['whe_1', 'whe_2', 'whe_1', 'whe_2']) {
    await sender.send({ ...post(receiver.url), endpointId });
    await rested();
  }
  expect(receiver.connections()).toBe(2);
});

test('after one closed connection no other kept one is tried', async () => {
  let waiting: (() => void)[] = [];
  const { receiver, sender } = await rawServed((socket, reset, nth) => {
    if (nth > 1) return reset();
    waiting.push(() => socket.write(OK));
    // The first three together, so that three connections are kept; then each as it comes.
    if (receiver.connections() < 3) return;
    for (const answer of waiting) answer();
    waiting = [];
  });
  await Promise.all([1, 2, 3].map(() => sender.send(post(receiver.url))));
  await rested();
  expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ kind: 'delivered' });
  expect(receiver.connections()).toBe(4);
});

test('the new connection after a kept one is the last try: what it comes to is the outcome', async () => {
  let requests = 0;
  const { receiver, sender } = await rawServed((socket, reset) => {
    requests += 1;
    if (requests === 1) socket.write(OK);
    else reset();
  });
  expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ kind: 'delivered' });
  await rested();
  expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ kind: 'failed', failure: 'reset' });
  expect(requests).toBe(3);
});

test('a kept connection that the partner has closed while idle is not used', async () => {
  const { receiver, sender } = await rawServed((socket) => {
    socket.write(OK, () => setTimeout(() => socket.end(), 50));
  });
  await sender.send(post(receiver.url));
  await until(() => receiver.open() === 0, 'its connection is closed', 5_000);
  expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ kind: 'delivered' });
  expect(receiver.connections()).toBe(2);
});

test('hosts do not share connections, even at one address', async () => {
  const wildcard = await certificateFor('*.partner.test');
  const { receiver, sender } = await served((_request, response) => response.end(), { tls: wildcard });
  for (const name of ['a', 'b', 'a', 'b']) {
    const { outcome } = await sender.send(post(`https://${name}.partner.test:${receiver.port}/`));
    expect(outcome).toMatchObject({ kind: 'delivered' });
    await rested();
  }
  expect(receiver.connections()).toBe(2);
});

test('sends at the same time run side by side, each on its own connection', async () => {
  let waiting: (() => void)[] = [];
  const { receiver, sender } = await served((_request, response) => {
    waiting.push(() => response.end());
    if (waiting.length === 16) {
      for (const answer of waiting) answer();
      waiting = [];
    }
  });
  for (let round = 0; round < 3; round += 1) {
    const results = await Promise.all(Array.from({ length: 16 }, () => sender.send(post(receiver.url))));
    expect(results.every(({ outcome }) => outcome.kind === 'delivered')).toBe(true);
    await rested();
  }
  expect(receiver.connections()).toBe(16);
});

test('a server that gives a connection its only process, as uWSGI with one does, answers all that are sent at once', async () => {
  const waiting: (() => void)[] = [];
  let servedNow: Socket | null = null;
  const { receiver, sender } = await served(({ socket }, response) => {
    const serve = () => {
      servedNow = socket;
      socket.once('close', () => {
        servedNow = null;
        waiting.shift()?.();
      });
      response.end('ok');
    };
    if (servedNow === null) serve();
    else waiting.push(serve);
  });
  // By turns of the four seconds that a connection is kept idle, the last would take longer than an answer may.
  const results = await Promise.all(Array.from({ length: 8 }, () => sender.send(post(receiver.url))));
  expect(results.map(({ outcome }) => outcome.kind)).toEqual(results.map(() => 'delivered'));
}, 30_000);

test('closing the sender closes what is idle', async () => {
  const { receiver, sender } = await served((_request, response) => response.end());
  await sender.send(post(receiver.url));
  expect(receiver.open()).toBe(1);
  sender.close();
  await until(() => receiver.open() === 0, 'its connection is closed', 5_000);
});

test('a kept connection on which no answer comes in time is a failure, and is not sent again', async () => {
  let requests = 0;
  const silent = (socket: { write(text: string): unknown }) => {
    requests += 1;
    if (requests === 1) socket.write(OK);
  };
  const { receiver, sender } = await rawServed(silent, { timeouts: { headersMs: 300 } });
  await sender.send(post(receiver.url));
  await rested();
  expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ failure: 'timeout' });
  expect(requests).toBe(2);
});

test('where no kept connection has brought an answer, as with an HttpServer of Java whose exchange stays open, none is kept for a day', async () => {
  const once = (socket: { write(text: string): unknown }, _reset: () => void, nth: number) => {
    if (nth === 1) socket.write(OK);
  };
  const { receiver, sender } = await rawServed(once, { timeouts: { headersMs: 1_000 } });
  const kinds: string[] = [];
  for (let sent = 0; sent < 4; sent += 1) {
    kinds.push((await sender.send(post(receiver.url))).outcome.kind);
    await rested();
  }
  expect(kinds).toEqual(['delivered', 'failed', 'delivered', 'delivered']);
  expect(receiver.connections()).toBe(3);
});

test('an endpoint that has answered on a kept connection and hangs once keeps connections as before', async () => {
  let requests = 0;
  const third = (socket: { write(text: string): unknown }) => {
    requests += 1;
    if (requests !== 3) socket.write(OK);
  };
  const { receiver, sender } = await rawServed(third, { timeouts: { headersMs: 1_000 } });
  const kinds: string[] = [];
  for (let sent = 0; sent < 5; sent += 1) {
    kinds.push((await sender.send(post(receiver.url))).outcome.kind);
    await rested();
  }
  expect(kinds).toEqual(['delivered', 'delivered', 'failed', 'delivered', 'delivered']);
  expect(receiver.connections()).toBe(2);
});

const collected = () => {
  const closing: (string | undefined)[] = [];
  return {
    closing,
    listener: (request: { headers: { connection?: string } }, response: { end(): unknown }) => {
      closing.push(request.headers.connection);
      response.end();
    },
  };
};

test('after surplus bytes an endpoint gets a connection for each attempt, others as before', async () => {
  let surplus = 0;
  const { receiver, sender } = await rawServed((socket, _reset, nth) => {
    socket.write(
      OK,
      () => nth === 1 && receiver.connections() === 1 && setTimeout(() => socket.write(OK), 20),
    );
  });
  const one = { ...post(receiver.url), onSurplus: () => (surplus += 1) };
  await sender.send(one);
  await until(() => surplus === 1, 'the second answer is noticed', 5_000);
  for (let sent = 0; sent < 3; sent += 1) {
    expect((await sender.send(one)).outcome).toMatchObject({ kind: 'delivered' });
    await rested();
  }
  expect(receiver.connections()).toBe(4);
  for (let sent = 0; sent < 3; sent += 1) {
    await sender.send({ ...one, endpointId: 'whe_2' });
    await rested();
  }
  expect(receiver.connections()).toBe(5);
});

test('an endpoint that is alone gets a connection for each attempt, and is told so', async () => {
  const { closing, listener } = collected();
  const { receiver, sender } = await served(listener);
  for (const alone of [false, true, true]) {
    await sender.send({ ...post(receiver.url), alone });
    await rested();
  }
  expect(closing).toEqual(['keep-alive', 'close', 'close']);
  expect(receiver.connections()).toBe(3);
});

test('an answer that comes before the request is none', async () => {
  let requests = 0;
  // In TLS 1.2 the server ends the handshake, so that its greeting comes with it.
  const tls = { ...(await certificateFor()), maxVersion: 'TLSv1.2' } as const;
  const { receiver, sender } = await served(() => (requests += 1), { tls });
  receiver.onSecure((socket) => socket.write(OK));
  const { outcome } = await sender.send(post(receiver.url));
  expect(outcome).toMatchObject({ kind: 'failed', failure: 'protocol', reason: 'early' });
  expect(requests).toBe(0);
});
