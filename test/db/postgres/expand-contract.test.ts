import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { migrateDatabase } from '../../../db/postgres/migrate';
import { startTestApi } from '../../support/api';
import { createTestDatabase } from '../../support/database';
import { startTestWorker, until } from '../../support/delivery';
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
    states: async () =>
      (await api.database.sql`select state from notifications_now`).map((row) => row['state']),
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

const migrations = readdirSync(join(root, 'db/migrations')).filter((name) => name.endsWith('.sql'));
/** Only once there is a migration for a schema before it: 0.1.0 begins with one alone. */
const withSchemaBefore = migrations.length > 1 ? test : () => undefined;

withSchemaBefore(
  'this release on the schema of the one before answers, keeps what it cannot send, and sends it once migrated',
  async () => {
    const sql = postgres(testServerUrl(), { max: 1, onnotice: () => undefined });
    const url = new URL(testServerUrl());
    url.pathname = '/schema_before';
    await sql`create database schema_before`;
    const folder = join(directory, 'before');
    await cp(join(root, 'db/migrations'), folder, { recursive: true });
    const file = join(folder, 'meta/_journal.json');
    const journal = JSON.parse(await readFile(file, 'utf8')) as { entries: unknown[] };
    await writeFile(file, JSON.stringify({ ...journal, entries: journal.entries.slice(0, -1) }));
    await migrateDatabase(url.href, folder);

    const release = await releaseOn(url.href);
    expect((await release.api.quote()).status).toBe(200);
    // 202 where the last migration is one that the worker needs.
    expect([200, 202]).toContain((await release.notify()).status);
    await migrateDatabase(url.href);
    await until(async () => (await release.states()).join() === 'delivered', 'it is delivered', 60_000);
    expect((await release.api.quote()).status).toBe(200);
    await release.close();
    await sql`drop database schema_before with (force)`;
    await sql.end();
  },
  120_000,
);

/** @returns what the check says about a migration of these statements; empty when it has nothing against it. */
async function checked(statements: string): Promise<string> {
  const folder = await temporaryDirectory('migration');
  await writeFile(join(folder, '0001_next.sql'), statements);
  const said = await new Promise<string>((resolve) => {
    execFile(process.execPath, [join(root, 'scripts/check-migrations.mjs'), folder], (error, _out, err) =>
      resolve(error === null ? '' : err),
    );
  });
  await removeDirectory(folder);
  return said;
}

test.each([
  ['ALTER TABLE "quotes" DROP COLUMN "response";', /drops/],
  ['DROP TABLE "quotes";', /drops/],
  ['ALTER TABLE "quotes"\n  RENAME COLUMN "response" TO "answer";', /renames/],
  ['ALTER TABLE "quotes" ALTER COLUMN "response" SET NOT NULL;', /obligatory/],
  ['ALTER TABLE "quotes" ADD COLUMN "answer" text NOT NULL;', /obligatory column/],
  ['ALTER TABLE "quotes" ALTER COLUMN "response" SET DATA TYPE text;', /type/],
  ['select 1;--> statement-breakpoint\nTRUNCATE "quotes";', /empties/],
])('a migration that takes away is refused: %s', async (statement, what) => {
  expect(await checked(statement)).toMatch(what);
  expect(await checked(`-- contract: unused since 0.2.0\n${statement}`)).toBe('');
});

test('a migration that adds is not', async () => {
  const added = `
    -- We drop nothing, and rename nothing.
    ALTER TABLE "quotes" ADD COLUMN "a" text;--> statement-breakpoint
    ALTER TABLE "quotes" ADD COLUMN "b" integer DEFAULT 0 NOT NULL;
    CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN TRUNCATE scratch; END $$;
    CREATE INDEX "i" ON "quotes" ("a");`;
  expect(await checked(added)).toBe('');
});
