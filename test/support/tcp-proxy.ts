import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** Stands between a client and a server and misbehaves on request. Faults apply to open and to new connections. */
export type TcpProxy = Awaited<ReturnType<typeof startTcpProxy>>;

const TICK_MS = 10;

/** Forwards a free loopback port to `port`. */
export async function startTcpProxy({ port }: { readonly port: number }) {
  const faults = { delayMs: 0, frozen: false };
  const sockets = new Set<Socket>();
  const pumps = new Set<() => void>();

  /** Copies one direction through a queue, so that every fault is a matter of when the queue is emptied. */
  const join = (from: Socket, to: Socket) => {
    const queue: { data: Buffer; due: number }[] = [];
    let ended = false;
    let finished = false;
    const pump = () => {
      if (faults.frozen || finished) return;
      for (let head = queue[0]; head && head.due <= Date.now(); head = queue[0]) {
        queue.shift();
        to.write(head.data);
      }
      if (queue.length > 0 || !ended) return;
      finished = true;
      to.end();
    };
    pumps.add(pump);
    const timer = setInterval(pump, TICK_MS);
    from.on('data', (data) => {
      queue.push({ data, due: Date.now() + faults.delayMs });
      // With no fault set nothing waits for the tick.
      if (faults.delayMs === 0) pump();
    });
    from.on('end', () => {
      ended = true;
      pump();
    });
    from.on('close', () => {
      clearInterval(timer);
      pumps.delete(pump);
      sockets.delete(from);
      // A reset travels on; an orderly end has gone through the queue.
      if (!ended) to.destroy();
    });
    from.on('error', () => to.resetAndDestroy());
  };

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const upstream = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
    sockets.add(client).add(upstream);
    join(client, upstream);
    join(upstream, client);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });

  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    /** Holds every chunk back for so long, in both directions. 0: no delay. */
    delay: (ms: number) => void (faults.delayMs = ms),
    /** Passes nothing on and closes nothing; new connections are accepted and hang. */
    freeze: () => void (faults.frozen = true),
    unfreeze: () => {
      faults.frozen = false;
      for (const pump of pumps) pump();
    },
    cut,
    close: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
