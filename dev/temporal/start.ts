import { spawn } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { SEARCH_ATTRIBUTES } from '../../domain/notification-states';
import { StackFailure } from '../failure';
import { openLog } from '../log-file';
import { checkPorts } from '../ports';
import { stopLeftoversOf, stopServer, type ServerKind } from '../server-kind';
import { endOf, stopOnce } from '../server-process';
import { DYNAMIC_CONFIG } from './dynamic-config';
import { waitUntilReady } from './ready';
import { runProgram } from './run-program';

export interface TemporalOptions {
  /** As findTemporal gives it. */
  readonly executable: string;
  /** Created when it is missing. Its parent gets the log, `<dir>.log`. */
  readonly dataDir: string;
  /** On 127.0.0.1, like all that it listens on. */
  readonly port: number;
  /** Of the web page; null: none. */
  readonly uiPort: number | null;
  readonly namespace?: string;
  /** False: do not wait for the disk. For directories that are thrown away. */
  readonly sync?: boolean;
  readonly onProgress?: (message: string) => void;
  /** Gives up starting, and leaves nothing running. */
  readonly signal?: AbortSignal | undefined;
}

export interface RunningTemporal {
  /** `host:port` of its gRPC service, without TLS. */
  readonly address: string;
  readonly namespace: string;
  readonly uiUrl: string | null;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves when the server has ended, for whatever reason. */
  readonly exited: Promise<void>;
  /** Orderly, about 2 s; harder after 10 s. Safe to call twice. */
  stop(): Promise<void>;
  /** kill -9, without waiting. What was acknowledged is in its file. */
  kill(): void;
}

/** It stops within 2 s, when it is well. Its file is in order even after SIGKILL. */
const DEV_SERVER: ServerKind = {
  name: 'Temporal',
  program: 'temporal',
  dataFlag: '--db-filename',
  stopBy: [
    ['SIGTERM', 10_000],
    ['SIGKILL', 5_000],
  ],
};

/** The file that holds the server's state. */
export function temporalDataFile(dataDir: string): string {
  return join(resolve(dataDir), 'temporal.db');
}

/** Stops the server that a killed run left behind on this data directory. @throws StackFailure when it cannot be stopped. */
export const stopTemporalLeftovers = (
  dataDir: string,
  onProgress: (message: string) => void,
): Promise<void> => stopLeftoversOf(DEV_SERVER, temporalDataFile(dataDir), onProgress);

/**
 * Starts a real Temporal server (the CLI's dev server) in a process group of its own, with our search attributes. It
 * outlives a killed parent; the next start on the same directory stops it first.
 * @throws StackFailure when it does not start; the message names the port in use, or holds the end of its log.
 */
export async function startTemporal(options: TemporalOptions): Promise<RunningTemporal> {
  const dataDir = resolve(options.dataDir);
  const logFile = `${dataDir}.log`;
  const namespace = options.namespace ?? 'default';
  const address = `127.0.0.1:${options.port}`;
  await mkdir(dataDir, { recursive: true });
  await stopTemporalLeftovers(dataDir, options.onProgress ?? (() => undefined));
  if (options.signal?.aborted) throw new StackFailure('Stopped while starting.');

  // Another server there would answer, and seem to be ours.
  await checkPorts([
    { setting: 'STACK_PORT', host: '127.0.0.1', port: options.port },
    ...(options.uiPort === null ? [] : [{ setting: 'STACK_PORT', host: '127.0.0.1', port: options.uiPort }]),
  ]);
  const { log, offset } = await openLog(logFile);
  await startAnewForOtherVersion(options, dataDir);
  const child = spawn(options.executable, serverArguments(dataDir, namespace, options), {
    detached: true,
    cwd: dataDir,
    // Nothing of ours: TEMPORAL_… would be taken for flags. It wants a home.
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: dataDir, TZ: 'UTC' },
    stdio: ['ignore', log.fd, log.fd],
  });
  let failure: Error | undefined;
  child.once('error', (error) => (failure = error));
  const exited = endOf(child);
  await log.close();
  const fault = () => failure;
  const { signal } = options;
  const outcome = await waitUntilReady({ address, namespace, child, fault, logFile, offset, signal });
  if (outcome !== 'ready') {
    child.kill('SIGKILL');
    await exited;
    throw outcome;
  }
  // Our process may end without it: then the next start finds it.
  child.unref();
  return {
    address,
    namespace,
    uiUrl: options.uiPort === null ? null : `http://127.0.0.1:${options.uiPort}`,
    pid: child.pid ?? 0,
    logFile,
    exited,
    stop: stopOnce(child, exited, (pid) => stopServer(DEV_SERVER, pid)),
    kill: () => void child.kill('SIGKILL'),
  };
}

/**
 * The dev server does not migrate its file: one of another version has other columns, and what it is asked then fails. Postgres
 * holds every delivery, so nothing is lost with it.
 */
async function startAnewForOtherVersion(
  { executable, onProgress, signal }: TemporalOptions,
  dataDir: string,
): Promise<void> {
  const note = join(dataDir, 'version');
  // One that cannot be run is told of when it should start.
  const version = await runProgram(executable, ['--version'], { timeoutMs: 20_000, signal }).catch(
    () => null,
  );
  if (version === null) return;
  const before = await readFile(note, 'utf8').catch(() => null);
  if (before === version) return;
  if (before !== null) {
    onProgress?.(
      `Temporal's dev server was ${before.trim()} and is ${version.trim()} now: its state starts anew, deliveries go on from Postgres`,
    );
    for (const suffix of ['', '-wal', '-shm', '-journal'])
      await rm(`${temporalDataFile(dataDir)}${suffix}`, { force: true });
  }
  await writeFile(note, version);
}

/** The data file first: leftovers are known by it. */
function serverArguments(dataDir: string, namespace: string, options: TemporalOptions): string[] {
  const { port, uiPort, sync = true } = options;
  return [
    'server',
    'start-dev',
    '--db-filename',
    temporalDataFile(dataDir),
    '--ip=127.0.0.1',
    `--port=${port}`,
    uiPort === null ? '--headless' : `--ui-port=${uiPort}`,
    `--namespace=${namespace}`,
    '--log-format=json',
    '--log-level=error',
    ...(sync ? [] : ['--sqlite-pragma=synchronous=0']),
    ...Object.entries(DYNAMIC_CONFIG).map(([name, value]) => `--dynamic-config-value=${name}=${value}`),
    ...SEARCH_ATTRIBUTES.map((name) => `--search-attribute=${name}=Keyword`),
  ];
}
