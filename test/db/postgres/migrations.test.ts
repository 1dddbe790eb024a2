import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { openClient } from '../../../db/postgres/driver/client';
import { differentFunctions, migrateDatabase } from '../../../db/postgres/migrate';
import { testServerUrl, useDatabase } from '../../support/database';
import { migrationsBefore } from '../../support/migrations';

const database = useDatabase();

test('functions are what the files say; one that was changed by hand, or is missing, is found, and the next migration installs it again', async () => {
  const [row] = await database.sql<{ text: string }[]>`
    select pg_get_functiondef(oid) as text from pg_proc where proname = 'open_attempt_1'`;
  await database.sql.unsafe((row?.text ?? '').replace("'other_endpoint'", "'other'"));
  await database.sql`drop function delivery_queue_1`;
  expect((await differentFunctions(database.sql)).toSorted()).toEqual(['delivery_queue_1', 'open_attempt_1']);
  await migrateDatabase(database.url);
  expect(await differentFunctions(database.sql)).toEqual([]);
});

test('an upgrade leaves the style of a hidden list unstated, names the merchants, and logs them', async () => {
  const server = openClient(testServerUrl(), { max: 1, quietMs: 0 });
  await server`create database hidden_lists`;
  const url = Object.assign(new URL(testServerUrl()), { pathname: '/hidden_lists' }).href;
  const sql = openClient(url, { max: 1, quietMs: 0 });
  await migrate(drizzle(sql), { migrationsFolder: await migrationsBefore('summary_style') });
  await sql`insert into merchants (merchant_id, show_products, summary_style) values
    ('M300001', true, 'offer'), ('M300002', false, 'offer'), ('M300003', false, 'headline'),
    ('M300004', false, default), ('M300005', true, 'headline')`;

  expect(await migrateDatabase(url)).toMatchObject({
    changes: [expect.stringMatching(/^the summary is now the plain headline for 2 .*: M300002, M300004 \(/)],
  });
  const styles = await sql`select merchant_id as id, summary_style as style from merchants order by 1`;
  expect(styles.map(({ id, style }) => [id, style])).toEqual([
    ['M300001', 'offer'],
    ['M300002', null],
    ['M300003', 'headline'],
    ['M300004', null],
    ['M300005', 'headline'],
  ]);
  expect([...(await sql`select actor, subject, details from change_log order by subject`)]).toEqual(
    ['M300002', 'M300004'].map((subject) => ({
      actor: 'migration',
      subject,
      details: { change: 'updated', summary_style: null },
    })),
  );
  expect(await migrateDatabase(url)).toMatchObject({ changes: [] });

  await sql.end();
  await server`drop database hidden_lists with (force)`;
  await server.end();
});
