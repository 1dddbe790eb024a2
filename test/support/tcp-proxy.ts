import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Stands between a client and a server and misbehaves on request. Faults apply to open and to new connections. */
export type TcpProxy = Awaited<ReturnType<typeof startTcpProxy>>;

/** Forwards a free loopback port to `port`. */
export async function startTcpProxy({ port }: { port: number }) {
  const sockets = new Set<Socket>();
  const lost = new WeakSet<Socket>();
  let delayMs = 0;
  let swallows = false;
  let frozen: Promise<void> | undefined;
  let thaw = () => {};

  /** Copies one direction: every fault is a matter of when a piece is passed on. */
  const join = (from: Socket, to: Socket) => {
    let passed = Promise.resolve();
    let ended = false;
    const pass = (out: () => void) => {
      if (lost.has(from)) return;
      const before = passed;
      const due = delayMs > 0 ? sleep(delayMs) : undefined;
      passed = (async () => {
        await before;
        await due;
        while (frozen) await frozen;
        out();
      })();
    };
    from.on('data', (data) => pass(() => to.write(data)));
    from.on('end', () => {
      ended = true;
      pass(() => to.end());
    });
    from.on('close', () => {
      sockets.delete(from);
      // A reset travels on; an orderly end comes after what was sent before it.
      if (!ended) to.destroy();
    });
    from.on('error', () => to.resetAndDestroy());
  };

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    if (swallows) {
      sockets.add(client.on('error', () => undefined).resume());
      return;
    }
    const upstream = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
    sockets.add(client).add(upstream);
    join(client, upstream);
    join(upstream, client);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');

  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    /** Holds every chunk back for so long, in both directions. 0: no delay. */
    delay: (ms: number) => void (delayMs = ms),
    /** Passes nothing on and closes nothing; new connections are accepted and hang. */
    freeze: () => {
      frozen ??= new Promise((resolve) => (thaw = resolve));
    },
    unfreeze: () => {
      frozen = undefined;
      thaw();
    },
    /** Open connections pass nothing on any more, and are not closed: their host is gone. New ones lead to another. */
    lose: () => sockets.forEach((socket) => lost.add(socket)),
    /** New connections are accepted, and nothing is ever passed on between them and the server. */
    swallow: (on: boolean) => void (swallows = on),
    /** New connections lead to another port, as after a failover. */
    leadTo: (other: number) => void (port = other),
    cut,
    close: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
