import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { migrateDatabase } from '../../../db/postgres/migrate';
import { openDatabaseAt, testServerUrl } from '../../support/database';
import { addEndpoint } from '../../../testbed/notifications';
import { startTestService } from '../../support/service';
import { testTemporal } from '../../support/temporal';
import { runDirectory } from '../../../testbed/temporary-directory';

const temporal = testTemporal();
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
  const directory = runDirectory('migrations');
  const next = join(directory, 'next');
  await cp(join(__dirname, '../../../db/migrations'), next, { recursive: true });
  await writeFile(join(next, '9999_next.sql'), NEXT);
  const file = join(next, 'meta/_journal.json');
  const journal = JSON.parse(await readFile(file, 'utf8')) as { entries: { idx: number; when: number }[] };
  const last = journal.entries.at(-1)!;
  const entries = [...journal.entries, { ...last, idx: last.idx + 1, when: last.when + 1, tag: '9999_next' }];
  await writeFile(file, JSON.stringify({ ...journal, entries }));

  const sql = postgres(testServerUrl(), { max: 1, onnotice: () => undefined });
  const url = new URL(testServerUrl());
  url.pathname = '/two_releases';
  const databaseUrl = url.href;
  await sql`create database two_releases`;
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
  await sql`drop database two_releases with (force)`;
  await sql.end();
}, 120_000);
