/**
 * Fails when a committed generated file no longer follows from its source: the migrations from db/schema, the client's types from the
 * OpenAPI document, and what scripts/generate.ts writes. The tree is not touched.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

const root = join(import.meta.dirname, '..');
const client = join(root, 'clients/typescript');
const faults = [];

checkMigrations();
run(['--import', 'tsx', 'scripts/generate.ts', '--check']);
if (existsSync(join(client, 'node_modules/openapi-typescript'))) {
  const stale =
    'clients/typescript/src/schema.ts does not follow from contracts/openapi.json; run npm run openapi.';
  run(['generate.mjs', '--check'], client, stale);
} else faults.push('npm ci installs what the client generates its types with.');
for (const fault of faults) console.error(fault);
process.exitCode = faults.length > 0 ? 1 : 0;

/** On a copy. */
function checkMigrations() {
  const [snapshot, ...more] = readdirSync(join(root, 'db/migrations/meta')).filter(
    (name) => name !== '_journal.json',
  );
  if (more.length > 0)
    faults.push(`drizzle-kit reads only the last snapshot; delete db/migrations/meta/${snapshot}`);
  const scratch = mkdtempSync(join(tmpdir(), 'pfqs-generated-'));
  const copy = join(scratch, 'migrations');
  cpSync(join(root, 'db/migrations'), copy, { recursive: true });
  const kit = join(root, 'node_modules/drizzle-kit/bin.cjs');
  // drizzle-kit takes `out` relative to where it runs.
  const options = ['--dialect=postgresql', '--schema=./db/schema/index.ts', `--out=${relative(root, copy)}`];
  const output = run([kit, 'generate', ...options]);
  const added = readdirSync(copy).filter((name) => !existsSync(join(root, 'db/migrations', name)));
  // It adds nothing when it has a question (a rename?), which its output then shows.
  const sql = added.map((name) => readFileSync(join(copy, name), 'utf8')).join('\n') || output;
  rmSync(scratch, { recursive: true, force: true });
  if (!output.includes('No schema changes'))
    faults.push(`db/schema has changes without a migration; run npm run db:generate. It would add:\n${sql}`);
}

/** @returns what it printed; shown only when something is wrong. */
function run(args, cwd = root, meaning = `${args.join(' ')} failed:`) {
  try {
    return execFileSync(process.execPath, args, { cwd, encoding: 'utf8', stdio: 'pipe', timeout: 120_000 });
  } catch (error) {
    faults.push(`${meaning}\n${error.stdout}${error.stderr}`);
    return '';
  }
}
