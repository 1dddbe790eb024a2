import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../test/support/free-port';
import { asRole } from '../test/support/roles';

/** A server under load, in a process of its own. */
export interface Target {
  readonly child: ChildProcess;
  readonly port: number;
  /** Where health and metrics are read. */
  readonly internalPort: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface TargetOptions {
  readonly databaseUrl: string;
  /** Gets each server's standard output, as a file that a log collector reads. */
  readonly directory: string;
  /** For Node, the same for both servers. */
  readonly nodeArgs: readonly string[];
  readonly body: string;
}

/**
 * The real API process (bin/api.ts) with every check, hook, metric and log line on, behind a proxy it trusts by
 * address; only the rate limit is raised.
 */
export async function startOurs(options: TargetOptions & { readonly key: string }): Promise<Target> {
  const port = await freePort();
  const internalPort = await freePort();
  const child = launch('ours', 'bin/api.ts', [], options, {
    DATABASE_URL: asRole(options.databaseUrl, 'api'),
    API_PORT: String(port),
    INTERNAL_PORT: String(internalPort),
    TRUSTED_PROXIES: '127.0.0.1',
    RATE_LIMIT_PER_MINUTE: '100000000',
  });
  await healthy(internalPort);
  const headers = { Authorization: `Bearer ${options.key}`, 'X-Forwarded-Proto': 'https' };
  return { child, port, internalPort, headers, body: options.body };
}

/** The bare route (bench/bare-route.ts), sent the same bodies. */
export async function startBare(options: TargetOptions): Promise<Target> {
  const port = await freePort();
  const child = launch('bare', 'bench/bare-route.ts', [options.databaseUrl, String(port)], options, {});
  await healthy(port);
  return { child, port, internalPort: port, headers: {}, body: options.body };
}

/** Ends a server in order, so that a profile of it is written. */
export async function end({ child }: Target): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 5_000);
  await once(child, 'exit');
  clearTimeout(timer);
}

function launch(
  name: string,
  file: string,
  args: readonly string[],
  { directory, nodeArgs }: TargetOptions,
  environment: Record<string, string>,
): ChildProcess {
  return spawn(process.execPath, [...nodeArgs, '--import', 'tsx', file, ...args], {
    cwd: join(__dirname, '..'),
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', openSync(join(directory, `${name}.log`), 'w'), 'inherit'],
  });
}

async function healthy(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const answered = await fetch(`http://127.0.0.1:${port}/health`).then(
      () => true,
      () => false,
    );
    if (answered) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`nothing answers on port ${port}`);
}
