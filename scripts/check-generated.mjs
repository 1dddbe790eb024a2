/**
 * Fails when a committed generated file no longer follows from its source: the migrations from db/schema, the OpenAPI files from
 * contracts/, the client's types from those, the signed test event and the state diagrams in their pages,
 * docs/settings.md from the settings. Works on copies; the tree is not touched.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'pfqs-generated-'));
const faults = [];

try {
  checkMigrations();
  checkOpenApi();
  checkClientTypes();
  run(['--import', 'tsx', join(root, 'scripts/write-guide.ts'), '--check']);
  run(['--import', 'tsx', join(root, 'scripts/write-settings.ts'), '--check']);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
for (const fault of faults) console.error(fault);
process.exitCode = faults.length > 0 ? 1 : 0;

function checkMigrations() {
  const copy = join(scratch, 'migrations');
  cpSync(join(root, 'db/migrations'), copy, { recursive: true });
  const kit = join(root, 'node_modules/drizzle-kit/bin.cjs');
  // drizzle-kit takes `out` relative to where it runs.
  const options = ['--dialect=postgresql', '--schema=./db/schema/index.ts', `--out=${relative(root, copy)}`];
  const output = run([kit, 'generate', ...options]);
  if (output.includes('No schema changes')) return;
  const added = readdirSync(copy).filter((name) => !existsSync(join(root, 'db/migrations', name)));
  // It adds nothing when it has a question (a rename?), which its output then shows.
  const sql = added.map((name) => readFileSync(join(copy, name), 'utf8')).join('\n') || output;
  faults.push(`db/schema has changes without a migration; run npm run db:generate. It would add:\n${sql}`);
}

function checkOpenApi() {
  const script = join(root, 'scripts/write-openapi.ts');
  run(['--import', 'tsx', script, '--out', scratch]);
  for (const name of readdirSync(scratch).filter((name) => name.endsWith('.json'))) {
    const committed = join(root, 'contracts', name);
    if (readFileSync(committed).equals(readFileSync(join(scratch, name)))) continue;
    faults.push(
      `contracts/${name} does not follow from contracts/ and scripts/openapi/; run npm run openapi.`,
    );
  }
}

function checkClientTypes() {
  const client = join(root, 'clients/typescript');
  const copy = join(scratch, 'schema.ts');
  const generator = join(client, 'node_modules/openapi-typescript/bin/cli.js');
  run([generator, join(root, 'contracts/openapi.json'), '--output', copy, '--default-non-nullable', 'false']);
  if (!existsSync(copy)) return void faults.push('npm ci installs what the client generates its types with.');
  if (!readFileSync(copy).equals(readFileSync(join(client, 'src/schema.ts')))) {
    faults.push(
      'clients/typescript/src/schema.ts does not follow from contracts/openapi.json; run npm run openapi.',
    );
  }
}

/** @returns what it printed; shown only when something is wrong. */
function run(args) {
  try {
    return execFileSync(process.execPath, args, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 120_000,
    });
  } catch (error) {
    faults.push(`${args.join(' ')} failed:\n${error.stdout}${error.stderr}`);
    return '';
  }
}
