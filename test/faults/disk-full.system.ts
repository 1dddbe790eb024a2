import { execFile } from 'node:child_process';
import { open, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { useApi } from '../support/api';
import { fileNeeds } from '../support/needs';
import { startOwnPostgres, type OwnPostgres } from '../../testbed/own-postgres';
import { migrateWithLogins } from '../../testbed/roles';
import { removeDirectory, temporaryDirectory } from '../../testbed/temporary-directory';

const run = promisify(execFile);

// Root alone may mount a small file system.
fileNeeds('namespaces');
let disk: Awaited<ReturnType<typeof provideSmallDisk>>;
let server: OwnPostgres;
const api = useApi(async () => {
  disk = await provideSmallDisk();
  server = await startOwnPostgres({ max_wal_size: '64MB', min_wal_size: '32MB' }, disk.directory);
  await migrateWithLogins(server.url);
  return { databaseUrl: server.url };
});
afterAll(async () => {
  await server?.close();
  await disk?.close();
});

const stored: string[] = [];

async function quote(): Promise<number> {
  const answer = await api.quote();
  if (answer.status === 200) stored.push(answer.body.data.service_quote_id);
  else expect(answer).toMatchObject({ status: 500, body: { error: { code: 'INTERNAL_SERVER_ERROR' } } });
  return answer.status;
}

test('a full disk: writes fail with 500, reads go on, and all is well once there is room', async () => {
  const { sql } = api.database;
  const startedAt = async () => String((await sql`select pg_postmaster_start_time() as at`)[0]?.['at']);
  expect(await quote()).toBe(200);
  const started = await startedAt();

  await disk.fill();
  // Pages that were begun still take some.
  let failed = 0;
  for (let tries = 0; tries < 2_000 && failed < 5; tries += 1)
    failed = (await quote()) === 500 ? failed + 1 : 0;
  expect(failed).toBe(5);
  const faults = api.logs.filter((line) => line.includes('"level":50'));
  expect(faults.join()).toContain('No space left on device');
  // A merchant that is not in memory is looked for in Postgres, and a key of one's own goes on to be one.
  expect(await api.quote({ merchant_id: 'M999999' })).toMatchObject({ status: 404 });
  expect((await sql`select 1 from quotes where quote_id = ${stored[0] ?? ''}`).count).toBe(1);
  expect(await api.readyStatus()).toBe(200);

  await disk.free();
  for (let tries = 0; tries < 20; tries += 1) expect(await quote()).toBe(200);
  expect(await startedAt()).toBe(started);
  expect((await sql`select 1 from quotes where quote_id = any(${stored})`).count).toBe(stored.length);
});

/** A file system of 200 MB that can really run out (ENOSPC). Root alone may mount it. */
async function provideSmallDisk() {
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
