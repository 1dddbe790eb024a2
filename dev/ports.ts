import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { StackFailure } from './failure';

export interface WantedPort {
  /** The setting that changes it. */
  readonly setting: string;
  readonly host: string;
  readonly port: number;
}

/** Ports of the embedded stack, from that of Temporal on. */
export const stackPorts = (temporal: number) => ({
  temporal,
  postgres: temporal + 1,
  /** As Temporal's own dev server has it. */
  temporalPage: temporal + 1000,
  shop: temporal + 1211,
});

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
    await listen('127.0.0.1', port).then(
      (server) => servers.set(port, server),
      () => undefined,
    );
  }
  await Promise.all([...servers.values()].map(close));
  return [...servers.keys()];
}

/** @throws StackFailure naming port and setting. */
export async function checkPorts(wanted: readonly WantedPort[]): Promise<void> {
  const faults: string[] = [];
  for (const [index, { setting, host, port }] of wanted.entries()) {
    const twin = wanted.slice(0, index).find((earlier) => earlier.port === port);
    const code = twin ? undefined : await tryToListen(host, port);
    if (twin)
      faults.push(
        `Port ${port} is wanted twice, for ${twin.setting} and for ${setting}: change one of them.`,
      );
    else if (code === 'EADDRINUSE')
      faults.push(`Port ${port} is in use. Free it, or set ${setting} to another port.`);
    else if (code === 'EACCES')
      faults.push(`Port ${port} is not allowed to this user. Set ${setting} to a port from 1024 on.`);
    else if (code !== undefined) faults.push(`${host}:${port} (${setting}) cannot be listened on: ${code}.`);
  }
  if (faults.length > 0) throw new StackFailure(faults.join('\n'));
}

/** @returns the error code, or undefined when it works. */
async function tryToListen(host: string, port: number): Promise<string | undefined> {
  return listen(host, port).then(
    async (server) => close(server),
    (error: NodeJS.ErrnoException) => error.code ?? error.message,
  );
}

async function listen(host: string, port: number): Promise<Server> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  return server;
}

async function close(server: Server): Promise<undefined> {
  await new Promise((resolve) => server.close(resolve));
}
