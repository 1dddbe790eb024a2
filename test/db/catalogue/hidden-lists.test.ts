import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { openClient } from '../../../db/postgres/driver/client';
import { migrateDatabase } from '../../../db/postgres/migrate';
import { testServerUrl } from '../../support/database';
import { runDirectory } from '../../../testbed/temporary-directory';

const MIGRATIONS = join(__dirname, '../../../db/migrations');

/** The migrations before the one of this name, in a folder of their own. */
async function migrationsBefore(name: string): Promise<string> {
  const folder = join(runDirectory('hidden-lists'), 'migrations');
  await cp(MIGRATIONS, folder, { recursive: true });
  const file = join(folder, 'meta/_journal.json');
  const journal = JSON.parse(await readFile(file, 'utf8')) as { entries: { tag: string }[] };
  const at = journal.entries.findIndex(({ tag }) => tag.endsWith(`_${name}`));
  await writeFile(file, JSON.stringify({ ...journal, entries: journal.entries.slice(0, at) }));
  return folder;
}

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
