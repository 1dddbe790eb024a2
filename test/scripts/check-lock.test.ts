import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';

const root = join(__dirname, '..', '..');

interface Entry {
  integrity?: string;
  resolved?: string;
}

/** What the check prints about this project's own lock file with one entry changed; empty when it passes. */
async function check(change: (entry: Entry) => void): Promise<string> {
  const directory = await temporaryDirectory('lock');
  const file = join(directory, 'package-lock.json');
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Entry>;
  };
  change(lock.packages['node_modules/fastify'] ?? {});
  await writeFile(file, JSON.stringify(lock));
  try {
    return await new Promise((resolve) => {
      execFile(process.execPath, [join(root, 'scripts/check-lock.mjs'), file], (error, _out, printed) =>
        resolve(error ? printed : ''),
      );
    });
  } finally {
    await removeDirectory(directory);
  }
}

test('the lock file has a hash for every package that npm would fetch', async () => {
  expect(await check(() => undefined)).toBe('');
});

test.each<[string, (entry: Entry) => void, RegExp]>([
  ['no hash', (entry) => delete entry.integrity, /^package-lock.json: node_modules\/fastify has no SHA-512/],
  ['a weak hash', (entry) => (entry.integrity = 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk='), /has no SHA-512/],
  [
    'a git address',
    (entry) => (entry.resolved = 'git+ssh://git@example.com/fastify.git#v5'),
    /names where it was downloaded/,
  ],
])('refuses an entry with %s', async (_what, change, fault) => {
  expect(await check(change)).toMatch(fault);
});
