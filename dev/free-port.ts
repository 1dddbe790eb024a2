import { createServer, type Server } from 'node:net';

/** A loopback port that nothing listens on at this moment. */
export async function freePort(): Promise<number> {
  const [port] = await freeLowPorts(1);
  return port as number;
}

/** Several, all different, from 20000 to 32767: below what the system gives to outgoing connections. */
export async function freeLowPorts(count: number): Promise<number[]> {
  const servers = new Map<number, Server>();
  while (servers.size < count) {
    const port = 20_000 + Math.floor(Math.random() * 12_768);
    if (servers.has(port)) continue;
    await listen(port).then(
      (server) => servers.set(port, server),
      () => undefined,
    );
  }
  await Promise.all([...servers.values()].map(close));
  return [...servers.keys()];
}

async function listen(port: number): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return server;
}

async function close(server: Server): Promise<void> {
  await new Promise((resolve) => server.close(resolve));
}
