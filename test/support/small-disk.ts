import { execFile } from 'node:child_process';
import { open, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { childrenOf, processStatus } from '../../dev/processes';
import { removeDirectory, temporaryDirectory } from './temporary-directory';

const run = promisify(execFile);

/** Room for a Postgres server that can really run out. */
export interface SmallDisk {
  /** How: `tmpfs` (a file system of its own, ENOSPC) or `file size limit` (RLIMIT_FSIZE on the server, EFBIG). */
  readonly kind: 'tmpfs' | 'file size limit';
  /** Where Postgres is to lie; undefined: anywhere. */
  readonly parent: string | undefined;
  /** Leaves no room for another page of data. */
  fill(serverPid: number): Promise<void>;
  /** Gives the room back. */
  free(serverPid: number): Promise<void>;
  close(): Promise<void>;
}

/** A tmpfs of 200 MB where we may mount one; else the server's own files are limited, which needs no rights. */
export async function provideSmallDisk(): Promise<SmallDisk> {
  const directory = await temporaryDirectory('small-disk');
  try {
    await run('mount', ['-t', 'tmpfs', '-o', 'size=200m,mode=755', 'tmpfs', directory]);
  } catch {
    await removeDirectory(directory);
    return fileSizeLimit();
  }
  const filler = join(directory, 'filler');
  return {
    kind: 'tmpfs',
    parent: directory,
    fill: async () => {
      const file = await open(filler, 'w');
      try {
        // Whoever is starting there may give some back meanwhile.
        for (let tries = 0; tries === 0 || (await statfs(directory)).bavail > 0; tries += 1) {
          if (tries === 100) throw new Error(`${directory} does not stay full`);
          for (const size of [1024 * 1024, 4_096]) {
            const block = Buffer.alloc(size, 1);
            while ((await file.write(block).catch(noSpace)) !== undefined);
          }
        }
      } finally {
        await file.close();
      }
    },
    free: () => rm(filler, { force: true }),
    close: async () => {
      await run('umount', ['-l', directory]);
      await removeDirectory(directory);
    },
  };
}

function noSpace(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOSPC') throw error;
}

/** Fails where there is no prlimit (util-linux): a fault that was not tried must not look survived. */
function fileSizeLimit(): SmallDisk {
  const limit = async (serverPid: number, bytes: string) => {
    for (const pid of [serverPid, ...(await childrenOf(serverPid))]) {
      // As the account that Postgres runs under, which may limit itself; root without its capabilities may not.
      const { uid, gid } = await stat(`/proc/${pid}`);
      const account = process.getuid?.() === 0 ? { uid, gid } : {};
      // A session may end meanwhile.
      await run('prlimit', [`--pid=${pid}`, `--fsize=${bytes}:`], { ...account, cwd: '/' }).catch(
        async (error: unknown) => {
          if ((await processStatus(pid)) !== undefined) throw error;
        },
      );
    }
  };
  return {
    kind: 'file size limit',
    parent: undefined,
    // 16 MiB, the size of a segment of the log, so that data files meet it first.
    fill: (serverPid) => limit(serverPid, String(16 * 1024 * 1024)),
    free: (serverPid) => limit(serverPid, 'unlimited'),
    close: async () => undefined,
  };
}
