import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Connection, type ConnectionOptions } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../../domain/notification-states';
import { CHANNEL } from '../../runtime/temporal/temporal-target';
import { stoppedWhileStarting } from '../failure';
import { checkPorts, freePort } from '../ports';
import { launchServer, stopLeftoversOf, type RunningServer, type ServerKind } from '../server';
import { servePage } from './page';
import { runProgram } from './tools';

export { findTemporal } from './executable';

interface TemporalOptions {
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

export interface RunningTemporal extends RunningServer {
  /** `host:port` of its gRPC service, without TLS. */
  readonly address: string;
  readonly namespace: string;
  readonly uiUrl: string | null;
}

/** It stops within 2 s. Its file is consistent even after SIGKILL. */
const DEV_SERVER: ServerKind = {
  name: 'Temporal',
  program: 'temporal',
  dataFlag: '--db-filename',
  stopBy: [
    ['SIGTERM', 10_000],
    ['SIGKILL', 5_000],
  ],
  killBy: 'SIGKILL',
};

/** It takes one second on an idle machine. */
const START_TIMEOUT_MS = 60_000;
/** What a server of today does by default (1.32), for the older one in a CLI that was built with Go (1.29). */
const DYNAMIC_CONFIG = {
  'matching.useNewMatcher': true,
  'system.enableActivityEagerExecution': true,
  // Its API over HTTP answers any other host otherwise, also one whose name leads here (DNS rebinding).
  'frontend.httpAllowedHosts': '["localhost","localhost:*","127.0.0.1","127.0.0.1:*"]',
} as const;

export function temporalDataFile(dataDir: string): string {
  return join(resolve(dataDir), 'temporal.db');
}

/** Stops the server that a killed run left behind on this data directory. @throws StackFailure when it cannot be stopped. */
export const stopTemporalLeftovers = (
  dataDir: string,
  onProgress: (message: string) => void,
): Promise<void> => stopLeftoversOf(DEV_SERVER, temporalDataFile(dataDir), onProgress);

/**
 * Starts a real Temporal server (the CLI's dev server) in a process group of its own, with our search attributes.
 * @throws StackFailure when it does not start; the message names the port in use, or has the end of its log.
 */
export async function startTemporal(options: TemporalOptions): Promise<RunningTemporal> {
  const dataDir = resolve(options.dataDir);
  const namespace = options.namespace ?? 'default';
  const address = `127.0.0.1:${options.port}`;
  await mkdir(dataDir, { recursive: true });
  await stopTemporalLeftovers(dataDir, options.onProgress ?? (() => undefined));
  if (options.signal?.aborted) throw stoppedWhileStarting();

  // Another server there would answer, and seem to be ours.
  await checkPorts([
    { setting: 'STACK_PORT', host: '127.0.0.1', port: options.port },
    ...(options.uiPort === null ? [] : [{ setting: 'STACK_PORT', host: '127.0.0.1', port: options.uiPort }]),
  ]);
  await startAnewForOtherVersion(options, dataDir);
  const pageBehind = options.uiPort === null ? null : await hiddenPlace();
  const args = serverArguments(dataDir, namespace, options, pageBehind);
  // Nothing of ours: TEMPORAL_… would be taken for flags. It wants a home.
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: dataDir, TZ: 'UTC' };
  const server = await launchServer({
    kind: DEV_SERVER,
    spawn: (log) =>
      spawn(options.executable, args, { detached: true, cwd: dataDir, env, stdio: ['ignore', log, log] }),
    logFile: `${dataDir}.log`,
    answers: () => answersAt({ address }, namespace),
    timeoutMs: START_TIMEOUT_MS,
    signal: options.signal,
  });
  if (options.uiPort === null || pageBehind === null) return { ...server, address, namespace, uiUrl: null };
  const page = await servePage(options.uiPort, pageBehind).catch(async (error: unknown) => {
    await server.stop();
    throw error;
  });
  void server.exited.then(() => page.close());
  const stop = async () => {
    await page.close();
    await server.stop();
  };
  return { ...server, stop, address, namespace, uiUrl: `http://127.0.0.1:${options.uiPort}` };
}

/**
 * Where the page itself listens: on Linux at an address of loopback that nobody can guess, as it answers any host. Elsewhere loopback has one
 * address, so only the port is unknown.
 */
async function hiddenPlace(): Promise<{ host: string; port: number }> {
  const byte = () => randomInt(1, 255);
  const host = process.platform === 'linux' ? `127.${byte()}.${byte()}.${byte()}` : '127.0.0.1';
  return { host, port: await freePort() };
}

/** Whether the server knows its namespace. */
export async function answersAt(how: ConnectionOptions, namespace: string): Promise<boolean> {
  const connection = Connection.lazy({ ...how, ...CHANNEL, connectTimeout: 1_000 });
  try {
    await connection.withDeadline(Date.now() + 1_000, () =>
      connection.workflowService.describeNamespace({ namespace }),
    );
    return true;
  } catch {
    return false;
  } finally {
    await connection.close();
  }
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
function serverArguments(
  dataDir: string,
  namespace: string,
  options: TemporalOptions,
  page: { readonly host: string; readonly port: number } | null,
): string[] {
  const { port, sync = true } = options;
  return [
    'server',
    'start-dev',
    '--db-filename',
    temporalDataFile(dataDir),
    '--ip=127.0.0.1',
    `--port=${port}`,
    ...(page === null ? ['--headless'] : [`--ui-ip=${page.host}`, `--ui-port=${page.port}`]),
    `--namespace=${namespace}`,
    '--log-format=json',
    '--log-level=error',
    ...(sync ? [] : ['--sqlite-pragma=synchronous=0']),
    ...Object.entries(DYNAMIC_CONFIG).map(([name, value]) => `--dynamic-config-value=${name}=${value}`),
    ...SEARCH_ATTRIBUTES.map((name) => `--search-attribute=${name}=Keyword`),
  ];
}
