import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectDatabase } from '../../db/connect';
import { migrateDatabase } from '../../db/migrate';
import { issueKey } from '../../db/queries/api-key-changes';
import { createPartner } from '../../db/queries/partners';
import { startApiProcess } from '../../test/support/api-process';
import { addMerchant } from '../../test/support/merchants';
import { startOwnPostgres } from '../../test/support/postgres-server';
import { removeDirectory, temporaryDirectory } from '../../test/support/temporary-directory';

/**
 * `npm run test:fuzz [cases]`: a second opinion on the OpenAPI document, then schemathesis against a real API process
 * on a real Postgres. Both come from PyPI, in versions fixed here, into a cache folder outside the repository. Ends
 * with 1 when either finds anything, or when fewer cases ran than were asked for.
 */
const PACKAGES = ['schemathesis==4.32.5', 'openapi-spec-validator==0.9.0'];
const CASES = Number(process.argv[2] ?? 20_000);
const PARTNER_ID = 'P100001';
/** What every key is answered for, and what this script stores. */
const MERCHANTS = ['M000001', 'M000002', 'M000003', 'M000004', 'M000005', 'M100001', 'AB-1C2D-3E4F-5G6H'];

const root = join(__dirname, '../..');

/** The folder of the virtual environment's programs; made on the first run. */
function pythonPrograms(): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? (homedir() === '/' ? tmpdir() : join(homedir(), '.cache'));
  const venv = join(cache, 'pfqs-fuzz', PACKAGES.join('_').replaceAll('==', '-'));
  const programs = join(venv, 'bin');
  const complete = join(venv, 'complete');
  if (existsSync(complete)) return programs;
  console.log(`installing ${PACKAGES.join(', ')} into ${venv}`);
  mkdirSync(venv, { recursive: true });
  const run = (program: string, args: string[]) => execFileSync(program, args, { stdio: 'inherit' });
  run('python3', ['-m', 'venv', '--clear', venv]);
  run(join(programs, 'pip'), ['install', '--quiet', '--disable-pip-version-check', ...PACKAGES]);
  writeFileSync(complete, '');
  return programs;
}

async function run(program: string, args: readonly string[], environment: Record<string, string> = {}) {
  const child = spawn(program, args, {
    cwd: join(root, 'scripts/fuzz'),
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    process.stdout.write(chunk);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { passed: code === 0, output };
}

async function fuzz(programs: string): Promise<boolean> {
  const postgres = await startOwnPostgres({ fsync: 'off' });
  const directory = await temporaryDirectory('fuzz');
  try {
    await migrateDatabase(postgres.url);
    const key = await fill(postgres.url);
    const api = await startApiProcess({ databaseUrl: postgres.url });
    try {
      const ca = join(directory, 'ca.pem');
      writeFileSync(ca, api.ca);
      const base = `https://127.0.0.1:${api.port}`;
      const started = performance.now();
      const { passed, output } = await run(
        join(programs, 'schemathesis'),
        [
          '--config-file=schemathesis.toml',
          'run',
          `${base}/openapi.json`,
          `--header=Authorization: Bearer ${key}`,
          `--tls-verify=${ca}`,
          `--max-examples=${CASES}`,
          '--no-color',
          '--report=ndjson',
          `--report-dir=${directory}`,
        ],
        {
          FUZZ_PARTNER_ID: PARTNER_ID,
          FUZZ_MERCHANTS: MERCHANTS.join(','),
          REQUESTS_CA_BUNDLE: ca,
          PYTHONDONTWRITEBYTECODE: '1',
        },
      );
      return report({
        passed,
        output,
        seconds: (performance.now() - started) / 1000,
        statuses: await answersByStatus(api.internalPort),
        apiLog: api.output(),
      });
    } finally {
      await api.close();
    }
  } finally {
    await removeDirectory(directory);
    await postgres.close();
  }
}

/** A partner, its key, and a merchant under each form of merchant id. */
async function fill(url: string): Promise<string> {
  const database = connectDatabase({ url, poolSize: 1, applicationName: 'fuzz', statementTimeoutMs: 5_000 });
  try {
    const stored = { products: [{}, { depositMin: { kind: 'percent', basisPoints: 1_000 } as never }] };
    await addMerchant(database, 'M100001', { products: [{}, {}] });
    await addMerchant(database, 'AB-1C2D-3E4F-5G6H', { products: stored.products.slice(0, 1) });
    return await database.db.transaction(async (tx) => {
      await createPartner(tx, { partnerId: PARTNER_ID, name: 'Fuzz' });
      return (await issueKey(tx, { partnerId: PARTNER_ID, environment: 'sandbox', expiresInSeconds: null }))
        .key;
    });
  } finally {
    await database.close();
  }
}

/** The API's own count: what really arrived, and how it was answered. */
async function answersByStatus(internalPort: number): Promise<Map<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${internalPort}/metrics`)).text();
  const statuses = new Map<string, number>();
  for (const [, status = '', count] of text.matchAll(
    /^pfqs_http_request_seconds_count\{route="\/v1\/finance-quote",status="(\d+)"\} (\d+)$/gm,
  )) {
    statuses.set(status, Number(count));
  }
  return statuses;
}

function report(run: {
  passed: boolean;
  output: string;
  seconds: number;
  statuses: Map<string, number>;
  apiLog: string;
}): boolean {
  const cases = [...run.statuses.values()].reduce((sum, count) => sum + count, 0);
  const faults = run.apiLog.split('\n').filter((line) => /"level":(50|60)/.test(line));
  console.log(`\nfuzz: ${cases} requests to POST /v1/finance-quote in ${run.seconds.toFixed(0)} s; answers:`);
  for (const [status, count] of [...run.statuses].toSorted(([a], [b]) => a.localeCompare(b)))
    console.log(`  ${status}: ${count}`);
  if (!run.passed) console.log('fuzz: schemathesis has findings, see above');
  if (cases < CASES) console.log(`fuzz: fewer cases than the ${CASES} asked for`);
  for (const line of faults.slice(0, 10)) console.log(`fuzz: the API logged ${line}`);
  return run.passed && cases >= CASES && faults.length === 0;
}

async function main(): Promise<void> {
  const programs = pythonPrograms();
  const document = join(root, 'contracts/openapi.json');
  const valid = await run(join(programs, 'openapi-spec-validator'), ['--validation-errors=all', document]);
  const clean = await fuzz(programs);
  console.log(`\nopenapi-spec-validator: ${valid.passed ? 'valid' : 'NOT valid'}`);
  console.log(`schemathesis: ${clean ? 'nothing found' : 'FINDINGS'}`);
  process.exitCode = valid.passed && clean ? 0 : 1;
}

void main();
