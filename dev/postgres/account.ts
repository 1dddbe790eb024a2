import { type ChildProcess, execFile, spawn, type SpawnOptions } from 'node:child_process';
import { lchown, readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { StackFailure } from '../failure';

/** Starts programs under the account that owns the data directory. */
export interface Launcher {
  /** Hands a file to that account. */
  own(path: string): Promise<void>;
  spawn(program: string, args: readonly string[], options: SpawnOptions): ChildProcess;
}

interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/**
 * Nothing of ours reaches Postgres through the environment (PGPORT, PGDATA, LD_LIBRARY_PATH, a locale).
 * The folders are for `sh`, which initdb calls.
 */
const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

/**
 * Capabilities that let an account walk to a directory it owns through ones it may not enter, the weakest first;
 * containers often have only the second.
 */
const traversalCapabilities = ['+dac_read_search', '+dac_override'];

/**
 * Decides under which account Postgres runs in `directory`, which must exist. Postgres refuses to run as root, so root
 * drops to the directory's owner, else to an existing unprivileged account; no account is created.
 * @throws when that account cannot reach the binaries or the directory.
 */
export async function chooseLauncher(directory: string, initdb: string): Promise<Launcher> {
  const owner = await stat(directory);
  const self = process.getuid?.() ?? 0;
  if (self !== 0) {
    if (owner.uid === self) return launcher();
    throw new StackFailure(
      `${directory} belongs to user ${owner.uid} and you are user ${self}. Run as that user, or set DATA_DIR to another folder.`,
    );
  }
  const account =
    owner.uid === 0
      ? await unprivilegedAccount()
      : { name: `user ${owner.uid}`, uid: owner.uid, gid: owner.gid };
  if (owner.uid === 0) await chownTree(directory, account);

  const ids = ['--reuid', String(account.uid), '--regid', String(account.gid), '--clear-groups'];
  // Without it access(2), which Postgres calls, ignores the capabilities of an ordinary user.
  const setpriv = ['setpriv', ...ids, '--securebits', '+no_setuid_fixup'];
  const ways = [
    launcher(account),
    ...traversalCapabilities.map((capability) =>
      launcher(account, [...setpriv, '--inh-caps', capability, '--ambient-caps', capability, '--']),
    ),
  ];
  for (const way of ways) if (await reaches(way, directory, initdb)) return way;
  throw new StackFailure(
    `Postgres does not run as root, and the account it would run under (${account.name}) cannot reach ${directory} and ` +
      `${dirname(initdb)}. Set DATA_DIR to an existing folder that every user can enter (and keep the project in one), run as an ` +
      'ordinary user, or install setpriv (package util-linux).',
  );
}

/** @param account to run under, instead of this process's. @param prefix a command that changes to it, where Node cannot. */
function launcher(account?: Account, prefix: readonly string[] = []): Launcher {
  return {
    own: async (path) => {
      if (account) await lchown(path, account.uid, account.gid);
    },
    spawn: (program, args, options) => {
      const [file = program, ...rest] = [...prefix, program, ...args];
      // With a uid Node also drops the supplementary groups. The root folder, because ours may be closed to it.
      const drop = account && prefix.length === 0 ? { uid: account.uid, gid: account.gid } : {};
      return spawn(file, rest, { ...options, ...drop, cwd: '/', env: environment });
    },
  };
}

/** Really tries: mode bits alone do not tell (access lists, mount options, missing capabilities, the sandbox of a container). */
async function reaches(way: Launcher, directory: string, initdb: string): Promise<boolean> {
  // initdb finds and runs the server, reads its templates, and stops there.
  const script = 'cd "$1" && test -w . && cd / && "$2" --show -D "$1" -U postgres';
  return new Promise((resolve) => {
    const child = way.spawn('/bin/sh', ['-c', script, 'sh', directory, initdb], { stdio: 'ignore' });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}

async function unprivilegedAccount(): Promise<Account> {
  const passwd = await readFile('/etc/passwd', 'utf8').catch(() => '');
  for (const name of ['postgres', 'nobody']) {
    const local = passwd.split('\n').find((line) => line.startsWith(`${name}:`));
    const [, , uid, gid] = (local ?? (await directoryEntry(name))).split(':').map(Number);
    if (uid && gid && uid > 0) return { name, uid, gid };
  }
  throw new StackFailure(
    'Postgres does not run as root, and there is neither an account `postgres` nor `nobody`.',
  );
}

/** Accounts that are not in /etc/passwd (LDAP, systemd). */
async function directoryEntry(name: string): Promise<string> {
  const { stdout } = await promisify(execFile)('getent', ['passwd', name]).catch(() => ({ stdout: '' }));
  return stdout;
}

async function chownTree(path: string, account: Account): Promise<void> {
  await lchown(path, account.uid, account.gid);
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const at = join(path, entry.name);
    await (entry.isDirectory() ? chownTree(at, account) : lchown(at, account.uid, account.gid));
  }
}
