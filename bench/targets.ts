import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../test/support/free-port';
import { asRole } from '../test/support/roles';
import type { TestTls } from '../test/support/tls';

/** A server under load, in a process of its own. */
export interface Target {
  readonly child: ChildProcess;
  readonly port: number;
  /** Authority of its certificate, PEM; null: it speaks plain HTTP. */
  readonly ca: string | null;
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
  /** For a server that ends TLS itself. Default: plain HTTP, as behind a proxy. */
  readonly tls?: TestTls | null;
}

/**
 * The real API process (bin/api.ts) with every check, hook, metric and log line on; only the rate limit is raised. Without
 * TLS of its own it is behind a proxy that it trusts by address.
 */
export async function startOurs(options: TargetOptions & { readonly key: string }): Promise<Target> {
  const port = await freePort();
  const internalPort = await freePort();
  const files = tlsFiles(options);
  const child = launch('ours', 'bin/api.ts', [], options, {
    DATABASE_URL: asRole(options.databaseUrl, 'api'),
    API_PORT: String(port),
    INTERNAL_PORT: String(internalPort),
    RATE_LIMIT_PER_MINUTE: '100000000',
    ...(files === null
      ? { TRUSTED_PROXIES: '127.0.0.1' }
      : { TLS_CERT_FILE: files.cert, TLS_KEY_FILE: files.key }),
  });
  await listening(internalPort);
  const headers = {
    Authorization: `Bearer ${options.key}`,
    ...(files === null && { 'X-Forwarded-Proto': 'https' }),
  };
  return { child, port, ca: options.tls?.ca ?? null, internalPort, headers, body: options.body };
}

/** The bare route (bench/bare-route.ts), sent the same bodies. */
export async function startBare(options: TargetOptions): Promise<Target> {
  const port = await freePort();
  const files = tlsFiles(options);
  const args = [options.databaseUrl, String(port), ...(files === null ? [] : [files.cert, files.key])];
  const child = launch('bare', 'bench/bare-route.ts', args, options, {});
  await listening(port);
  return { child, port, ca: options.tls?.ca ?? null, internalPort: port, headers: {}, body: options.body };
}

function tlsFiles({ tls, directory }: TargetOptions): { cert: string; key: string } | null {
  if (!tls) return null;
  const files = { cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') };
  writeFileSync(files.cert, tls.cert);
  writeFileSync(files.key, tls.key, { mode: 0o600 });
  return files;
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

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 1_200; tries += 1) {
    const socket = connect({ port, host: '127.0.0.1' });
    const open = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`nothing listens on port ${port}`);
}
