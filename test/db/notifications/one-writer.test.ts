import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { useDatabase } from '../../support/database';

const database = useDatabase({ poolSize: 1 });
const root = join(__dirname, '../../..');
const PRODUCT = 'activities api bin db dev ops outbound runtime worker workflows'.split(' ');
const files = PRODUCT.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
).filter((file) => /\.(ts|sql)$/.test(file) && !file.startsWith('db/migrations/'));

/** The states of a notification are a table (domain/notification-states.ts), which only these files may apply. */
test.each([
  ['update', 'deliveries', ['claim.sql', 'notification.ts', 'open.sql', 'record.sql']],
  ['insert into', 'deliveries', ['create.sql', 'create.ts', 'resend.ts']],
  ['delete from', 'deliveries', ['record.sql']],
  ['update', 'notifications', ['record.sql', 'resend.ts']],
])('%s %s stands only in %j', (statement, table, names) => {
  const [verb = '', preposition = ''] = statement.split(' ');
  const form = `${verb}\\s+${preposition}\\s*(only\\s+)?"?${table}\\b|\\.${verb}\\(${table}\\)`;
  const writers = files.filter((file) => new RegExp(form, 'i').test(readFileSync(join(root, file), 'utf8')));
  expect(writers.toSorted()).toEqual(names.map((name) => `db/notifications/${name}`));
});

/** Postgres commits transactions with a NOTIFY one after the other, each with its flush: hints follow the commit (hints.test.ts). */
test('a NOTIFY is sent by hints, the echo of the change feed and triggers of rare changes alone', async () => {
  const senders = files.filter((file) => readFileSync(join(root, file), 'utf8').includes('pg_notify('));
  expect(senders).toEqual(['db/postgres/change-feed.ts', 'db/postgres/hints.ts']);
  const rows = await database.sql<{ table: string }[]>`
    select distinct c.relname as table from pg_trigger t
      join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and p.prosrc ~* 'notify' order by 1`;
  expect(rows.map(({ table }) => table).join(' ')).toBe(
    'api_keys merchant_partners merchants partners product_versions products webhook_endpoints',
  );
});
