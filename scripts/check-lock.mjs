/**
 * Fails on a lock file with an entry that npm would install without comparing it with a hash, that comes from elsewhere than a
 * registry, or that names the registry it was resolved with.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const { packages } = JSON.parse(readFileSync(join(import.meta.dirname, '../package-lock.json'), 'utf8'));
/** Our own folders, which npm links. */
const own = new Set(['', ...Object.values(packages).flatMap(({ link, resolved }) => (link ? resolved : []))]);
/** Of a SHA-512. */
const HASH = /^sha512-[A-Za-z0-9+/]{86}==$/;

for (const [path, { link, resolved, integrity }] of Object.entries(packages)) {
  if (link || own.has(path)) continue;
  if (!HASH.test(integrity ?? '')) refuse(path, 'has no SHA-512 in `integrity`');
  if (resolved !== undefined) refuse(path, 'names where it was downloaded (`resolved`)');
}

function refuse(path, what) {
  console.error(`package-lock.json: ${path} ${what}; see CONTRIBUTING.md, "A dependency".`);
  process.exitCode = 1;
}
