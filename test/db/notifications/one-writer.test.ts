import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(__dirname, '../../..');
const PRODUCT = [
  'activities',
  'api',
  'bin',
  'db',
  'dev',
  'worker',
  'ops',
  'outbound',
  'runtime',
  'workflows',
];
/** Files, TypeScript and SQL, with a statement of this form; what one release migrates is its own business. */
const writers = (form: RegExp) =>
  PRODUCT.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  )
    .filter((file) => /\.(ts|sql)$/.test(file) && !file.startsWith('db/migrations/'))
    .filter((file) => form.test(readFileSync(join(root, file), 'utf8')))
    .toSorted();
const NOTIFICATIONS = 'db/notifications/';

test('a row of what is under way is changed by the texts of one file, and by the claim, the opening and the recording', () => {
  expect(writers(/update\s+(?:only\s+)?"?deliveries\b|\.update\(deliveries\)/i)).toEqual(
    ['claim.sql', 'notification.ts', 'open.sql', 'record.sql'].map((name) => NOTIFICATIONS + name),
  );
});

test('it is inserted where a notification is created or sent again, and deleted where it ends', () => {
  expect(writers(/insert\s+into\s+"?deliveries\b|\.insert\(deliveries\)/i)).toEqual(
    ['create.ts', 'resend.ts'].map((name) => NOTIFICATIONS + name),
  );
  expect(writers(/delete\s+from\s+(?:only\s+)?"?deliveries\b|\.delete\(deliveries\)/i)).toEqual([
    `${NOTIFICATIONS}record.sql`,
  ]);
});

test('a notification is changed where it ends, where it is sent again', () => {
  expect(writers(/update\s+(?:only\s+)?"?notifications\b|\.update\(notifications\)/i)).toEqual([
    `${NOTIFICATIONS}record.sql`,
    `${NOTIFICATIONS}resend.ts`,
  ]);
});
