import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openClient } from '../../../db/postgres/driver/client';
import { findNotification } from '../../../db/notifications/operator';
import { migrateDatabase } from '../../../db/postgres/migrate';
import { until } from '../../../testbed/until';
import { openDatabaseAt, testServerUrl, useDatabase } from '../../support/database';
import { migrationsWith } from '../../support/migrations';
import { storeOldNotification, storeOldQuote } from '../../support/old-rows';
import { storeMany } from '../../support/many-rows';
import { startTestService } from '../../support/service';
import { testTemporal } from '../../support/temporal';
import { addEndpoint } from '../../../testbed/notifications';
import { runDirectory } from '../../../testbed/temporary-directory';

const temporal = testTemporal();
const database = useDatabase();

/** Indexes of this name or with it before their month, and whether each is ready. */
const indexes = async (name: string) =>
  Object.fromEntries(
    (
      await database.sql<{ name: string; valid: boolean }[]>`
        select relname as name, indisvalid as valid from pg_index join pg_class c on c.oid = indexrelid
        where relname like ${`${name}%`} order by 1`
    ).map(({ name: found, valid }) => [found, valid]),
  );

/** The session that migrates, when it waits for a transaction. */
const waiting = () =>
  database.sql<{ pid: number }[]>`
    select pid from pg_stat_activity
    where datname = current_database() and query ~ 'CONCURRENTLY' and wait_event_type = 'Lock'`;

/** A transaction that Postgres waits for before an index is ready, open until the returned function is called. */
async function openTransaction(): Promise<() => Promise<unknown>> {
  const sql = openClient(database.url, { max: 1, quietMs: 0 });
  onceDone.push(() => sql.end({ timeout: 1 }));
  await sql.unsafe('begin isolation level repeatable read');
  await sql`select count(*) from deliveries`;
  return () => sql.unsafe('commit');
}
const onceDone: (() => Promise<unknown>)[] = [];
afterEach(async () => void (await Promise.all(onceDone.splice(0).map((close) => close()))));

test('an index is built while rows are written, and one that was interrupted is finished by the next call', async () => {
  await storeMany(database, { partnerId: 'P100001', each: 2_000 });
  await storeOldQuote(database, 0);
  const folder = await migrationsWith(`
    -- As a developer writes it.
    CREATE INDEX CONCURRENTLY IF NOT EXISTS "next_deliveries" ON "deliveries" USING btree ("due_at", "step") WHERE "state" = 'started';
    CREATE INDEX CONCURRENTLY IF NOT EXISTS "next_quotes" ON "quotes" USING btree ("merchant_id");`);
  const migrate = () => migrateDatabase(database.url, folder);
  const end = await openTransaction();
  const first = migrate().catch((error: Error) => error.message);
  await until(async () => (await waiting()).length === 1, 'the first call builds the index', 20_000);
  // It has begun, and will not end before the transaction does: rows are written, and nothing waits.
  expect(await indexes('next_')).toEqual({ next_deliveries: false });
  await database.sql.begin(async (tx) => {
    await tx`set local lock_timeout = '500ms'`;
    const changed = await tx`update deliveries set step = step + 1 where state = 'started'`;
    expect(changed.count).toBe(2_000);
  });
  await storeOldNotification(database, 0, 'held');
  const [{ pid } = { pid: 0 }] = await waiting();
  await database.sql`select pg_terminate_backend(${pid})`;
  expect(await first).toMatch(/terminat/);
  expect(await indexes('next_')).toEqual({ next_deliveries: false });

  // Two at once: one that waits for the other's turn must not be what an index waits for.
  const both = [migrate(), migrate()];
  await until(async () => (await waiting()).length === 1, 'the next call begins anew', 20_000);
  await end();
  await Promise.all(both);
  const found = await indexes('next_');
  expect(Object.values(found)).not.toContain(false);
  expect(Object.keys(found)).toEqual(expect.arrayContaining(['next_deliveries', 'next_quotes']));
  // The months that are ahead, this one and the rest.
  expect(Object.keys(found).filter((name) => /^next_quotes_(20\d\d_\d\d|default)$/.test(name))).toHaveLength(
    14,
  );
});

test('a month that is made after the index of its table has begun has it too', async () => {
  const folder = await migrationsWith(
    'CREATE INDEX CONCURRENTLY IF NOT EXISTS "later_attempts" ON "delivery_attempts" USING btree ("outcome");',
  );
  // As an interrupted call leaves it.
  await database.sql`create index later_attempts on only delivery_attempts using btree (outcome)`;
  await database.sql`drop table delivery_attempts_default`;
  await database.sql`create table delivery_attempts_default partition of delivery_attempts default`;
  await migrateDatabase(database.url, folder);
  expect((await indexes('later_attempts'))['later_attempts']).toBe(true);
});

test('a change of a table that a long transaction reads holds up no write behind it', async () => {
  const end = await openTransaction();
  const folder = await migrationsWith('ALTER TABLE "deliveries" ADD COLUMN "of_the_next" text;');
  const migrated = migrateDatabase(database.url, folder);
  const added = async () =>
    (await database.sql`select 1 from pg_attribute where attname = 'of_the_next'`).length > 0;
  const waits: number[] = [];
  const endsMs = performance.now() + 5_000;
  while (performance.now() < endsMs) {
    const begunMs = performance.now();
    await database.sql`update deliveries set step = step + 1 where partner_id = 'P100001'`;
    waits.push(performance.now() - begunMs);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(await added()).toBe(false);
  expect(Math.max(...waits)).toBeLessThan(2_500);
  await end();
  await migrated;
  expect(await added()).toBe(true);
});

test('a migration that is locked out by a deadlock begins anew', async () => {
  const folder = await migrationsWith(`
    -- As a server has it where log_lock_waits shall log short waits too.
    SET LOCAL deadlock_timeout = 100;
    ALTER TABLE "deliveries" ADD COLUMN "first_of_two" text;
    ALTER TABLE "monthly_counts" ADD COLUMN "second_of_two" text;`);
  const worker = openClient(database.url, { max: 1, quietMs: 0 });
  onceDone.push(() => worker.end({ timeout: 1 }));
  await worker.unsafe('begin');
  await worker`update monthly_counts set failed = failed + 1`;
  const migrated = migrateDatabase(database.url, folder);
  const blocked = async () =>
    (
      await database.sql`
        select 1 from pg_stat_activity
        where datname = current_database() and query ~ 'second_of_two' and wait_event_type = 'Lock'`
    ).length > 0;
  await until(blocked, 'the migration waits for the second table', 20_000, 10);
  // It has the first one: Postgres finds a deadlock, and ends the migration's transaction.
  await worker`select count(*) from deliveries`;
  await worker.unsafe('commit');
  await migrated;
});

test('a month that is made while a long transaction reads its table holds up no delivery behind it', async () => {
  const months = () =>
    database.sql<{ name: string }[]>`
      select inhrelid::regclass::text as name from pg_inherits
      where inhparent = 'notifications'::regclass and inhrelid <> 'notifications_default'::regclass order by 1`;
  const made = (await months()).map(({ name }) => name);
  await database.sql.unsafe(`drop table ${made.at(-1)}`);
  const dump = openClient(database.url, { max: 1, quietMs: 0 });
  onceDone.push(() => dump.end({ timeout: 1 }));
  await dump.unsafe('begin isolation level repeatable read');
  await dump`select count(*) from notifications`;
  const migrated = migrateDatabase(database.url, await migrationsWith('SELECT 1;'));
  const worker = openDatabaseAt(database.url, { byIndex: true });
  onceDone.push(() => worker.close());
  const waits: number[] = [];
  const endsMs = performance.now() + 5_000;
  while (performance.now() < endsMs) {
    const begunMs = performance.now();
    await findNotification(worker.sql, 'ntf_of_nobody');
    waits.push(performance.now() - begunMs);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(Math.max(...waits)).toBeLessThan(2_500);
  await dump.unsafe('commit');
  await migrated;
  expect((await months()).map(({ name }) => name)).toEqual(made);
});

test.each([
  ['CREATE INDEX "x" ON "quotes" USING btree ("merchant_id");', 'holds up writes to quotes'],
  [
    'CREATE UNIQUE INDEX CONCURRENTLY "x" ON "quotes" USING btree ("merchant_id");',
    'runs outside a transaction',
  ],
  ['ALTER TABLE "deliveries" ADD CONSTRAINT "x" CHECK ("step" < 9);', 'holds up writes to deliveries'],
  ['ALTER TABLE "deliveries" ADD CONSTRAINT "x" CHECK ("step" < 9) NOT VALID;', 'no later one validates'],
  [
    'ALTER TABLE "lender_events" ADD CONSTRAINT "x" FOREIGN KEY ("a") REFERENCES "b"("a") ON DELETE no action;',
    'lender_events',
  ],
  ['ALTER TABLE "partners" ADD CONSTRAINT "x" UNIQUE("name");', 'holds up writes to partners'],
  ['ALTER TABLE "quotes" ADD COLUMN "x" text DEFAULT gen_random_uuid();', 'writes every row anew'],
  [
    'ALTER TABLE "quotes" ADD COLUMN "x" text;\nALTER TABLE "quotes" VALIDATE CONSTRAINT "y";',
    'outside a transaction',
  ],
  ['ALTER TABLE "quotes" DROP COLUMN "x";', 'the release before it could not go on'],
  [
    'CREATE TABLE "n" ("a" text);\nCREATE INDEX "x" ON "n" USING btree ("a");\nALTER TABLE "n" ADD CONSTRAINT "y" CHECK ("a" > \'\');',
    null,
  ],
  ['ALTER TABLE "quotes" ADD COLUMN "x" timestamp with time zone DEFAULT service_now() NOT NULL;', null],
])('the check says what holds up writes, or breaks the release before: %s', async (text, said) => {
  const folder = join(runDirectory('check'), 'migrations');
  await mkdir(folder);
  await writeFile(join(folder, '0001_next.sql'), text);
  const script = join(__dirname, '../../../scripts/check-migrations.mjs');
  const run = promisify(execFile)(process.execPath, [script, folder]).then(
    () => null,
    ({ stderr }: { stderr: string }) => stderr,
  );
  if (said === null) expect(await run).toBeNull();
  else expect(await run).toContain(said);
});

test('a migration changes logged rows and then their table', async () => {
  await database.sql`insert into lenders (lender, name, reference_format) values ('old_lender', 'Old', 'OLD-{}')`;
  const folder = await migrationsWith(`
    UPDATE "lenders" SET "name" = 'New' WHERE "lender" = 'old_lender';
    ALTER TABLE "lenders" ADD COLUMN "since" date;`);
  await migrateDatabase(database.url, folder);
  const [line] = await database.sql`
    select details -> 'fields' as fields from change_log where subject = 'old_lender' order by change_id desc limit 1`;
  expect(line?.['fields']).toEqual([{ field: 'name', from: 'Old', to: 'New' }]);
});

/** What an expanding migration may add, to every table at once. */
const NEXT = `
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT c.oid::regclass::text FROM pg_class c
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
  LOOP
    EXECUTE format('ALTER TABLE %s ADD COLUMN of_the_next_release text, ADD COLUMN counted_next integer NOT NULL DEFAULT 0', name);
  END LOOP;
END $$;
CREATE TABLE next_things (id text PRIMARY KEY);`;

test('this release and the next one migrate one new database at once, and this one works on the schema of the next', async () => {
  const next = await migrationsWith(NEXT);
  await database.sql`create database two_releases`;
  const databaseUrl = new URL('/two_releases', testServerUrl()).href;
  const folders = [next, undefined, undefined, next, undefined, next];
  const answers = await Promise.all(folders.map((folder) => migrateDatabase(databaseUrl, folder)));
  expect(answers).toEqual(folders.map(() => ({ notSeparated: [], changes: [] })));
  const migrated = openDatabaseAt(databaseUrl);
  await migrated.sql`select of_the_next_release, counted_next from quotes, next_things`;
  await migrated.close();

  // A quote, and a notification from call to delivery.
  const service = await startTestService(temporal, { databaseUrl });
  const { api, keys, receiver } = service;
  await addEndpoint(api.database, { partnerId: api.partnerId, url: receiver.url, keyRing: keys });
  expect((await api.quote()).status).toBe(200);
  const notified = await api.call({ path: '/v1/notifications/test' });
  expect(notified).toMatchObject({ status: 200, body: { data: { status: 'delivered' } } });
  await service.close();
  await database.sql`drop database two_releases with (force)`;
});
