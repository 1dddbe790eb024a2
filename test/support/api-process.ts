import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { emittedBy } from './emitted';
import { freePort } from './free-port';
import { removeDirectory, temporaryDirectory } from './temporary-directory';
import { asRole } from './roles';
import { createTestTls } from './tls';
import { startWatchdog } from './watchdog';

/** A real API process of its own (bin/api.ts), which may be killed. */
export interface ApiProcess {
  readonly port: number;
  readonly internalPort: number;
  readonly ca: string;
  /** Its certificate and key, which it reads again at SIGHUP. */
  readonly tlsFiles: { readonly cert: string; readonly key: string };
  readonly child: ChildProcess;
  /** What it has written to standard output and standard error. */
  output(): string;
  /** Sends a signal and waits for the end. @returns exit code, or the signal that ended it. */
  end(signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null>;
  /** Kills it if it still runs, and removes its files. */
  close(): Promise<void>;
}

export interface ApiProcessOptions {
  /** Of the owner; the process logs in as its role, unless its environment says otherwise. */
  readonly databaseUrl: string;
  readonly environment?: Record<string, string>;
  /** Standard output goes into a pipe that nobody reads. */
  readonly blockedOutput?: boolean;
  readonly port?: number;
  readonly internalPort?: number;
  readonly args?: readonly string[];
}

/** It takes two seconds; on a machine that is drowned in work many more. */
const START_MS = 60_000;

export async function startApiProcess(options: ApiProcessOptions): Promise<ApiProcess> {
  const directory = await temporaryDirectory('api');
  const dismissWatchdog = startWatchdog(directory);
  const tls = await createTestTls();
  const certFile = join(directory, 'cert.pem');
  const keyFile = join(directory, 'key.pem');
  await writeFile(certFile, tls.cert);
  await writeFile(keyFile, tls.key, { mode: 0o600 });
  const port = options.port ?? (await freePort());
  const internalPort = options.internalPort ?? (await freePort());
  const root = join(__dirname, '../..');
  // The directory on the command line is how the watchdog finds it.
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', 'bin/api.ts', ...(options.args ?? []), `--files=${directory}`],
    {
      cwd: root,
      env: {
        PATH: process.env['PATH'],
        DATABASE_URL: asRole(options.databaseUrl, 'api'),
        API_PORT: String(port),
        INTERNAL_PORT: String(internalPort),
        TLS_CERT_FILE: certFile,
        TLS_KEY_FILE: keyFile,
        RATE_LIMIT_PER_MINUTE: '10000000',
        KEYLESS_CALLS_PER_MINUTE: '10000000',
        ...options.environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const written: string[] = [];
  const emit = emittedBy('api-process');
  const hear = (chunk: Buffer) => {
    written.push(chunk.toString());
    emit(chunk.toString());
  };
  if (!options.blockedOutput) child.stdout.on('data', hear);
  child.stderr.on('data', hear);
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;

  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    const [code, by] = await ended;
    return code ?? by;
  };
  const close = async () => {
    await end('SIGKILL');
    dismissWatchdog();
    await removeDirectory(directory);
  };
  const deadline = performance.now() + START_MS;
  for (;;) {
    const healthy = await fetch(`http://127.0.0.1:${internalPort}/health`).then(
      (answer) => answer.ok,
      () => false,
    );
    if (healthy) break;
    if (performance.now() > deadline || child.exitCode !== null) {
      await close();
      throw new Error(`the API process did not start:\n${written.join('')}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const tlsFiles = { cert: certFile, key: keyFile };
  return { port, internalPort, ca: tls.ca, tlsFiles, child, output: () => written.join(''), end, close };
}
