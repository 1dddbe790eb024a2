import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { migrateDatabase } from '../../../db/postgres/migrate';
import { createTestDatabase, openDatabaseAt } from '../../support/database';
import { addEndpoint } from '../../support/notifications';
import { startTestService } from '../../support/service';
import { testTemporal } from '../../support/temporal';
import { removeDirectory, temporaryDirectory } from '../../support/temporary-directory';
import { testServerUrl } from '../../support/test-server';

const temporal = testTemporal();
const root = join(__dirname, '../../..');
let directory: string;
beforeAll(async () => {
  directory = await temporaryDirectory('migrations');
});
afterAll(() => removeDirectory(directory));

/** What a release does for its users, on this database: a quote, and a notification from call to delivery. */
async function expectServed(databaseUrl: string): Promise<void> {
  const { api, close, keys, receiver } = await startTestService(temporal, { databaseUrl });
  await addEndpoint(api.database, { partnerId: api.partnerId, url: receiver.url, keyRing: keys });
  expect((await api.quote()).status).toBe(200);
  const notified = await api.call({ path: '/v1/notifications/test' });
  expect(notified).toMatchObject({ status: 200, body: { data: { status: 'delivered' } } });
  await close();
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
  await expectServed(clone.url);
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

  const migrated = openDatabaseAt(url.href);
  await migrated.sql`select of_the_next_release from quotes`;
  await migrated.close();
  await expectServed(url.href);
  await sql`drop database two_releases with (force)`;
  await sql.end();
}, 120_000);
