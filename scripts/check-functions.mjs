/**
 * Fails when a function of a `.sql` file (db/postgres/migrate.ts installs them) is not the one that db/functions.json has: a build that
 * still runs calls the version that a release installed, so a released text never changes (docs/operations/upgrade.md). `--write` writes
 * that file: after a change of a version that no release has, and after a new version.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const record = join(root, 'db/functions.json');
const FUNCTION = /^CREATE (?:OR REPLACE )?FUNCTION (\w+)\([\s\S]*?\$\$[\s\S]*?\$\$;?$/gm;
const found = {};
const faults = [];
const sql = readdirSync(join(root, 'db'), { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.sql'),
);
for (const name of sql.toSorted()) {
  for (const [text, called] of readFileSync(join(root, 'db', name), 'utf8').matchAll(FUNCTION)) {
    const own = !name.startsWith('migrations');
    if (own && !/_\d+$/.test(called)) faults.push(`db/${name}: ${called} has no version at its end.`);
    if (called in found) faults.push(`db/${name}: ${called} is defined twice.`);
    if (own) found[called] = createHash('sha256').update(text).digest('hex');
  }
}

if (process.argv.includes('--write')) writeFileSync(record, `${JSON.stringify(found, null, 2)}\n`);
const recorded = JSON.parse(readFileSync(record, 'utf8'));
for (const called of new Set([...Object.keys(found), ...Object.keys(recorded)]))
  if (found[called] !== recorded[called])
    faults.push(
      `${called} is not what db/functions.json has. Once a release has it, give the change the next version; else: ` +
        'node scripts/check-functions.mjs --write',
    );
for (const fault of faults) console.error(fault);
process.exitCode = faults.length > 0 ? 1 : 0;
