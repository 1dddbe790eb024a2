import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StackFailure } from '../failure';
import { chooseLauncher, type Launcher } from './account';
import type { PostgresBinaries } from './binaries';

export interface ClusterOptions {
  readonly dataDir: string;
  readonly password: string;
  readonly binaries: PostgresBinaries;
  /** False: do not wait for the disk. For directories that are thrown away. */
  readonly sync: boolean;
  readonly onProgress: (message: string) => void;
  readonly signal: AbortSignal | undefined;
}

/** Sees to it that there is a data directory. @returns how to start programs in it. */
export async function ensureCluster(options: ClusterOptions): Promise<Launcher> {
  const { dataDir, binaries } = options;
  const entries = await readdir(dataDir).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === 'ENOENT') return [];
    throw error.code === 'EACCES' ? unreadable(dataDir) : error;
  });
  if (entries.length === 0) return createCluster(options);
  if (!entries.includes('PG_VERSION'))
    throw new StackFailure(`${dataDir} holds files, but no Postgres data. Set DATA_DIR to another folder.`);
  const version = (await readFile(join(dataDir, 'PG_VERSION'), 'utf8')).trim();
  if (version !== binaries.majorVersion)
    throw new StackFailure(
      `${dataDir} was made by Postgres ${version}; this is ${binaries.majorVersion}. Set DATA_DIR to another folder, or DATABASE_URL.`,
    );
  return chooseLauncher(dataDir, binaries.initdb);
}

/** Into `<dir>.new`, renamed when complete: what exists under the final name is never half-made. */
async function createCluster(options: ClusterOptions): Promise<Launcher> {
  const { dataDir, binaries } = options;
  options.onProgress('creating a new database cluster');
  const unfinished = `${dataDir}.new`;
  const passwordFile = `${dataDir}.new-password`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { recursive: true, mode: 0o700 });
  const launcher = await chooseLauncher(unfinished, binaries.initdb);
  try {
    await rm(passwordFile, { force: true });
    await writeFile(passwordFile, options.password, { mode: 0o600, flag: 'wx' });
    await launcher.own(passwordFile);
    await initialise(launcher, options, [
      '-D',
      unfinished,
      '--username=postgres',
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      // The builtin provider sorts by code point on every system, whatever locales it has.
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--no-instructions',
      options.sync ? '--sync-method=fsync' : '--no-sync',
    ]);
    await rename(unfinished, dataDir);
  } finally {
    await rm(passwordFile, { force: true });
  }
  return launcher;
}

async function initialise(
  launcher: Launcher,
  options: ClusterOptions,
  args: readonly string[],
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    // Detached: a Ctrl-C in the terminal is ours to handle, through the signal.
    const child = launcher.spawn(options.binaries.initdb, args, {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    const collect = (chunk: Buffer) => (output += chunk.toString());
    child.stdout?.on('data', collect);
    child.stderr?.on('data', collect);
    const abort = () => child.kill('SIGINT');
    options.signal?.addEventListener('abort', abort, { once: true });
    if (options.signal?.aborted) abort();
    child.once('error', reject);
    child.once('close', (code) => {
      options.signal?.removeEventListener('abort', abort);
      if (code === 0) resolve();
      else reject(options.signal?.aborted ? new StackFailure('Stopped while starting.') : failed(output));
    });
  });
}

function failed(output: string): StackFailure {
  return new StackFailure(`initdb could not create the database cluster:\n${output.trim().slice(-2_000)}`);
}

function unreadable(dataDir: string): StackFailure {
  return new StackFailure(
    `${dataDir} belongs to another user. Run as that user, or set DATA_DIR to another folder.`,
  );
}
