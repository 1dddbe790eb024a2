/**
 * `npm run -s release:text`: the text of the release's tag, which is its section of docs/changelog.md. Fails when the version is not the same
 * everywhere, or has no section with a date.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const read = (file) => readFileSync(join(import.meta.dirname, '..', file), 'utf8');
const { version } = JSON.parse(read('package.json'));
const lock = JSON.parse(read('package-lock.json'));
const client = 'clients/typescript';

const others = {
  [`${client}/package.json`]: JSON.parse(read(`${client}/package.json`)).version,
  'package-lock.json': lock.version,
  'package-lock.json, packages': lock.packages[''].version,
  [`package-lock.json, ${client}`]: lock.packages[client].version,
};
for (const [file, other] of Object.entries(others))
  if (other !== version) refuse(`${file} says ${other}, and package.json ${version}`);

const [, ...sections] = read('docs/changelog.md').split(/^## /m);
const section = sections.find((text) => text.startsWith(`${version} `));
if (section === undefined) refuse(`docs/changelog.md has no section on ${version}`);
if (!/^\S+ \(\d{1,2} \w+ \d{4}\)\n/.test(section))
  refuse(`docs/changelog.md: write the date of the release behind ${version}, as in "(1 December 2026)"`);
const body = section.slice(section.indexOf('\n')).trim();
// Headings and links without their signs: nobody follows them in `git show`.
const plain = body.replaceAll(/^### /gm, '').replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
process.stdout.write(`Partner Finance Quote Service ${version}\n\n${plain}\n`);

/** Ends with 1, before anything that would pass for the text of a tag is written. */
function refuse(what) {
  console.error(`${what}.`);
  process.exit(1);
}
