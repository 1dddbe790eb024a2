import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';

const root = join(__dirname, '..', '..');
const FILES = ['package.json', 'package-lock.json', 'clients/typescript/package.json', 'docs/changelog.md'];
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };

const dated = (text: string) => text.replace(/^## (\S+) \(.*\)$/m, '## $1 (1 December 2026)');

/** What the script says about this project's own files with a dated change log, one of them changed. */
async function releaseText(file: string, change: (text: string) => string) {
  const directory = await temporaryDirectory('release');
  try {
    for (const name of FILES) {
      mkdirSync(dirname(join(directory, name)), { recursive: true });
      cpSync(join(root, name), join(directory, name));
    }
    const edit = (name: string, how: (text: string) => string) =>
      writeFileSync(join(directory, name), how(readFileSync(join(directory, name), 'utf8')));
    edit('docs/changelog.md', dated);
    edit(file, change);
    const script = join(root, 'scripts/release-text.mjs');
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, directory], { encoding: 'utf8' });
    return { status, stdout, stderr };
  } finally {
    await removeDirectory(directory);
  }
}

test('the text of the tag is the section of the version, without headings that git would drop and without links', async () => {
  const { status, stdout } = await releaseText('docs/changelog.md', (text) => text);
  expect(status).toBe(0);
  expect(stdout).toMatch(new RegExp(`^Partner Finance Quote Service ${version}\n\n\\S`));
  expect(stdout).toContain('\nFor partners\n');
  expect(stdout).not.toMatch(/^#|\]\(|unreleased/m);
});

test('ends at the section of the version before', async () => {
  const { stdout } = await releaseText(
    'docs/changelog.md',
    (text) => `${text}\n## 0.0.1 (1 May 2026)\n\n- Something old.\n`,
  );
  expect(stdout).not.toMatch(/Something old|0\.0\.1/);
});

test.each([
  [
    'a section without a date',
    'docs/changelog.md',
    [/^## \S+ \(.*\)$/m, `## ${version} (unreleased)`],
    'the date',
  ],
  [
    'no section of the version',
    'docs/changelog.md',
    [/^## \S+ \(.*\)$/m, '## 9.9.9 (1 December 2026)'],
    'no section',
  ],
  [
    'another version of the client',
    'clients/typescript/package.json',
    [`"${version}"`, '"9.9.9"'],
    'says 9.9.9',
  ],
  ['another version in the lock file', 'package-lock.json', [`"${version}"`, '"9.9.9"'], 'says 9.9.9'],
] as const)('refuses %s', async (_what, file, [from, to], why) => {
  const { status, stdout, stderr } = await releaseText(file, (text) => text.replace(from, to));
  expect(status).toBe(1);
  expect(stdout).toBe('');
  expect(stderr).toContain(why);
});
