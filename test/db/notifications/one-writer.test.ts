import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(__dirname, '../../..');
const PRODUCT = 'activities api bin db dev ops outbound runtime worker workflows'.split(' ');
const files = PRODUCT.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
).filter((file) => /\.(ts|sql)$/.test(file) && !file.startsWith('db/migrations/'));

/** The states of a notification are a table (domain/notification-states.ts), which only these files may apply. */
test.each([
  ['update', 'deliveries', ['claim.sql', 'notification.ts', 'open.sql', 'record.sql']],
  ['insert into', 'deliveries', ['create.ts', 'resend.ts']],
  ['delete from', 'deliveries', ['record.sql']],
  ['update', 'notifications', ['record.sql', 'resend.ts']],
])('%s %s stands only in %j', (statement, table, names) => {
  const [verb = '', preposition = ''] = statement.split(' ');
  const form = `${verb}\\s+${preposition}\\s*(only\\s+)?"?${table}\\b|\\.${verb}\\(${table}\\)`;
  const writers = files.filter((file) => new RegExp(form, 'i').test(readFileSync(join(root, file), 'utf8')));
  expect(writers.toSorted()).toEqual(names.map((name) => `db/notifications/${name}`));
});
