import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, lchown, mkdir, mkdtemp, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { StackFailure } from '../failure';

/** Starts Postgres' programs under the account that owns the data directory. */
export interface Launcher {
  /** Hands a file to that account. */
  own(path: string): Promise<void>;
  /** @param args behind `-D` and the directory */
  spawn(
    program: 'initdb' | 'postgres',
    directory: string,
    args: readonly string[],
    options: SpawnOptions,
  ): ChildProcess;
}

export interface PostgresBinaries {
  /** `bin`, `lib` and `share` are in it. */
  readonly root: string;
  /** Of the npm package. */
  readonly version: string;
}

interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** The account `nobody`, by its numbers on Linux. */
const NOBODY: Account = { uid: 65_534, gid: 65_534 };

/**
 * Nothing of ours reaches Postgres through the environment (PGPORT, PGDATA, LD_LIBRARY_PATH, a locale).
 * The folders are for `sh`, which initdb calls.
 */
const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

/**
 * How root's Linux names the directory to an account that may not enter the folders above it: a process needs no right there for the
 * directory that it was started in.
 */
const HERE = '/proc/self/cwd';
/** Where a copy of the binaries goes that every account can reach. */
const REACHABLE = '/var/cache/partner-finance-quote-service';

/**
 * Decides under which account Postgres runs in `directory`, which must exist. Postgres refuses to run as root, so root
 * drops to the directory's owner, else to `nobody`, and keeps no capability.
 * @throws when that account cannot reach the binaries or the directory.
 */
export async function chooseLauncher(directory: string, binaries: PostgresBinaries): Promise<Launcher> {
  const owner = await stat(directory);
  const self = process.getuid?.() ?? 0;
  if (self !== 0) {
    if (owner.uid === self) return launcher(binaries.root);
    throw new StackFailure(
      `${directory} belongs to user ${owner.uid} and you are user ${self}. Run as that user, or set DATA_DIR to another folder.`,
    );
  }
  const account = owner.uid === 0 ? NOBODY : owner;
  if (owner.uid === 0) await chownTree(directory, account);

  const installed = launcher(binaries.root, account);
  if (await runs(installed, directory)) return installed;
  const copied = launcher(await reachableCopy(binaries), account);
  if (await runs(copied, directory)) return copied;
  throw new StackFailure(
    `Postgres does not run as root, and the account it would run under (user ${account.uid}) cannot run it in ${directory}. ` +
      'Set DATA_DIR to a folder of that account, or run as an ordinary user.',
  );
}

/** @param account to run under, instead of this process's. */
function launcher(root: string, account?: Account): Launcher {
  return {
    own: async (path) => {
      if (account) await lchown(path, account.uid, account.gid);
    },
    spawn: (program, directory, args, options) => {
      // The last one counts. The first names the directory to whoever looks for its processes.
      const here = account && process.platform === 'linux' ? ['-D', HERE] : [];
      // With a uid Node also drops the supplementary groups, after it has entered the directory.
      const drop = account ? { uid: account.uid, gid: account.gid } : {};
      return spawn(join(root, 'bin', program), ['-D', directory, ...here, ...args], {
        ...options,
        ...drop,
        cwd: directory,
        env: environment,
      });
    },
  };
}

/** Really tries: mode bits alone do not tell (access lists, mount options, missing capabilities, the sandbox of a container). */
async function runs(way: Launcher, directory: string): Promise<boolean> {
  return new Promise((resolve) => {
    // initdb finds and runs the server, reads its templates, and stops there.
    const child = way.spawn('initdb', directory, ['--show', '-U', 'postgres'], { stdio: 'ignore' });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}

/**
 * Copies the binaries, 60 MB, for a project in a folder that only root may enter. Once for a version; moved when complete.
 * @returns the copy's folder
 */
async function reachableCopy({ root, version }: PostgresBinaries): Promise<string> {
  const copy = join(REACHABLE, `postgres-${version}-${process.platform}-${process.arch}`);
  try {
    await mkdir(REACHABLE, { recursive: true });
    await chmod(REACHABLE, 0o755);
    if (existsSync(copy)) return copy;
    const draft = await mkdtemp(`${copy}.new-`);
    await cp(await realpath(root), draft, { recursive: true, verbatimSymlinks: true });
    await chmodFolders(draft);
    await rename(draft, copy).catch(async (error: unknown) => {
      // Another start was quicker.
      await rm(draft, { recursive: true, force: true });
      if (!existsSync(copy)) throw error;
    });
    return copy;
  } catch (error) {
    throw new StackFailure(
      `Postgres does not run as root, other accounts cannot reach ${root}, and it cannot be copied: ${(error as Error).message}. ` +
        'Keep the project in a folder that every user can enter, or run as an ordinary user.',
    );
  }
}

/** Whatever the umask was. */
async function chmodFolders(path: string): Promise<void> {
  await chmod(path, 0o755);
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const at = join(path, entry.name);
    if (entry.isDirectory()) await chmodFolders(at);
    else if (entry.isFile()) await chmod(at, ((await stat(at)).mode & 0o111) === 0 ? 0o644 : 0o755);
  }
}

async function chownTree(path: string, account: Account): Promise<void> {
  await lchown(path, account.uid, account.gid);
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const at = join(path, entry.name);
    await (entry.isDirectory() ? chownTree(at, account) : lchown(at, account.uid, account.gid));
  }
}
