import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(__dirname, '../../..');
const PRODUCT = [
  'activities',
  'api',
  'bin',
  'db',
  'dev',
  'dispatcher',
  'ops',
  'outbound',
  'runtime',
  'workflows',
];
const CHANGES = /update\s+(?:only\s+)?"?notifications\b|\.update\(notifications\)/i;

test('one file changes notifications', () => {
  const files = PRODUCT.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  ).filter((file) => file.endsWith('.ts'));
  expect(files.length).toBeGreaterThan(250);
  const writers = files.filter((file) => CHANGES.test(readFileSync(join(root, file), 'utf8')));
  expect(writers.toSorted()).toEqual(['db/notifications/update.ts']);
});
