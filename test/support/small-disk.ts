import { execFile } from 'node:child_process';
import { open, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { removeDirectory, temporaryDirectory } from './temporary-directory';

const run = promisify(execFile);

/** A file system of 200 MB that can really run out (ENOSPC). Root alone may mount it. */
export type SmallDisk = Awaited<ReturnType<typeof provideSmallDisk>>;

export async function provideSmallDisk() {
  const directory = await temporaryDirectory('small-disk');
  await run('mount', ['-t', 'tmpfs', '-o', 'size=200m,mode=755', 'tmpfs', directory]);
  const filler = join(directory, 'filler');
  return {
    directory,
    /** Leaves no room for another page of data. */
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
