import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { migrateDatabase } from '../../../db/postgres/migrate';
import { startTestApi } from '../../support/api';
import { createTestDatabase } from '../../support/database';
import { startTestWorker } from '../../support/delivery';
import { addEndpoint, newKeyRingText } from '../../support/notifications';
import { randomTaskQueue, testTemporal } from '../../support/temporal';
import { removeDirectory, temporaryDirectory } from '../../support/temporary-directory';
import { testServerUrl } from '../../support/test-server';
import { startWebhookReceiver } from '../../support/webhook-receiver';

const temporal = testTemporal();
const root = join(__dirname, '../../..');
let directory: string;
beforeAll(async () => {
  directory = await temporaryDirectory('migrations');
});
afterAll(() => removeDirectory(directory));

/** What a release does for its users, on this database: quotes, and a notification from call to delivery. */
async function releaseOn(databaseUrl: string) {
  const api = await startTestApi({ databaseUrl });
  const receiver = await startWebhookReceiver();
  const keys = newKeyRingText();
  await addEndpoint(api.database, { partnerId: api.partnerId, url: receiver.url, keyRing: keys });
  const worker = await startTestWorker({
    databaseUrl,
    temporal,
    taskQueue: randomTaskQueue(),
    receiver,
    keys,
    environment: { DISPATCH_SWEEP_MS: '200' },
  });
  return {
    api,
    notify: () => api.call({ path: '/v1/notifications/test' }),
    close: async () => {
      await worker.close();
      await receiver.close();
      await api.close();
    },
  };
}

test('this release works on the schema of the next one', async () => {
  const clone = await createTestDatabase();
  const sql = postgres(clone.url, { max: 1, onnotice: () => undefined });
  // What an expanding migration may add, to every table at once.
  const tables = await sql<{ name: string }[]>`
    select c.oid::regclass::text as name from pg_class c
    where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace`;
  expect(tables.length).toBeGreaterThan(15);
  for (const { name } of tables) {
    await sql.unsafe(`alter table ${name} add column of_the_next_release text`);
    await sql.unsafe(`alter table ${name} add column counted_next integer not null default 0`);
  }
  await sql`create table next_things (id text primary key)`;
  const release = await releaseOn(clone.url);
  expect((await release.api.quote()).status).toBe(200);
  expect(await release.notify()).toMatchObject({ status: 200, body: { data: { status: 'delivered' } } });
  await release.close();
  await sql.end();
  await clone.close();
}, 120_000);

test('this release and the next one migrate one new database at once, and both serve', async () => {
  const next = join(directory, 'next');
  await cp(join(root, 'db/migrations'), next, { recursive: true });
  await writeFile(join(next, '9999_next.sql'), 'ALTER TABLE "quotes" ADD COLUMN "of_the_next_release" text;');
  const file = join(next, 'meta/_journal.json');
  const journal = JSON.parse(await readFile(file, 'utf8')) as { entries: { idx: number; when: number }[] };
  const last = journal.entries.at(-1)!;
  const entries = [...journal.entries, { ...last, idx: last.idx + 1, when: last.when + 1, tag: '9999_next' }];
  await writeFile(file, JSON.stringify({ ...journal, entries }));

  const sql = postgres(testServerUrl(), { max: 1, onnotice: () => undefined });
  const url = new URL(testServerUrl());
  url.pathname = '/two_releases';
  await sql`create database two_releases`;
  const folders = [next, undefined, undefined, next, undefined, next];
  const answers = await Promise.all(folders.map((folder) => migrateDatabase(url.href, folder)));
  expect(answers).toEqual(folders.map(() => ({ notSeparated: [] })));

  const release = await releaseOn(url.href);
  const column = await release.api.database.sql`
    select 1 from information_schema.columns where table_name = 'quotes' and column_name = 'of_the_next_release'`;
  expect(column).toHaveLength(1);
  expect((await release.api.quote()).status).toBe(200);
  expect(await release.notify()).toMatchObject({ status: 200, body: { data: { status: 'delivered' } } });
  await release.close();
  await sql`drop database two_releases with (force)`;
  await sql.end();
}, 120_000);
