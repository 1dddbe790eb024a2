import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** By the file of test/support that starts it. Temporal's own helper asks by itself. */
const STARTED_BY = {
  'support/haproxy': 'HAProxy',
  'support/redis': 'Redis',
  'support/production-temporal': 'Go',
} as const;
const tests = join(__dirname, '..');
const files = readdirSync(tests, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => ({ name, text: readFileSync(join(tests, name), 'utf8') }));

test.each(Object.entries(STARTED_BY))(
  'a test file that imports %s says that it needs %s',
  (started, part) => {
    const users = files.filter(({ text }) => text.includes(`/${started}'`));
    expect(users.length).toBeGreaterThan(0);
    const silent = users.filter(({ text }) => !/\b(fileNeeds|needs)\('/.test(text)).map(({ name }) => name);
    expect({ part, silent }).toEqual({ part, silent: [] });
  },
);
