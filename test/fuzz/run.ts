import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import document from '../../contracts/openapi.json';
import { connectPartner } from '../../dev/partner';
import { type ApiProcess, startApiProcess } from '../support/api-process';
import { compileProduct } from '../support/compiled';
import { openDatabaseAt } from '../support/database';
import { addMerchant } from '../support/merchants';
import { offerOnDemand } from '../support/on-demand';
import { addPartner } from '../support/partner-events';
import { startOwnPostgres } from '../../testbed/own-postgres';
import { migrateWithLogins } from '../../testbed/roles';
import { removeDirectory, temporaryDirectory } from '../../testbed/temporary-directory';

/**
 * `npm run test:fuzz [-- cases]`: a second opinion on the OpenAPI document, then schemathesis against a real API
 * process on a real Postgres, with a key whose limit is raised by configuration. Ends with 1 when either finds
 * anything, when the API logged a fault, or when fewer cases ran than were asked for. Nothing is left in the
 * repository.
 */
const CASES = Number(process.argv[2] ?? 20_000);
const PARTNER_ID = 'P100001';
/**
 * How many cases an operation gets. Nobody has registered a webhook: one that has been would be waited for 10 s each time, as no worker
 * runs, and its limit per month is soon used up. Of ids that are tried half have not the form of one, which is another path, and counted there.
 */
const MOST: Readonly<Record<string, number>> = { '/v1/finance-quote': CASES, '/v1/notifications/test': 200 };
const casesOf = (path: string) => Math.min(MOST[path] ?? (/[{]|sandbox/.test(path) ? 11_000 : 5_000), CASES);
/** What every key is answered for, and what this script stores. */
const MERCHANTS = ['M000001', 'M000002', 'M000003', 'M000004', 'M000005', 'M100001', 'AB-1C2D-3E4F-5G6H'];

/** Versions fixed here: a run of the same seed finds the same. They need Python 3.10 or later. */
const PACKAGES = ['schemathesis==4.32.5', 'openapi-spec-validator==0.9.0'];

async function main(): Promise<void> {
  if (!Number.isInteger(CASES) || CASES < 1)
    throw new Error('fuzz: the number of cases is a whole number from 1');
  const programs = pythonPrograms();
  const directory = await temporaryDirectory('fuzz');
  try {
    const validator = join(programs, 'openapi-spec-validator');
    const file = join(__dirname, '../../contracts/openapi.json');
    const valid = await succeeds(validator, ['--validation-errors=all', file], { cwd: directory });
    const clean = await fuzz(join(programs, 'schemathesis'), directory);
    console.log(`\nopenapi-spec-validator: ${valid ? 'valid' : 'NOT valid'}`);
    console.log(`schemathesis: ${clean ? 'nothing found' : 'FINDINGS, see above'}`);
    process.exitCode = valid && clean ? 0 : 1;
  } finally {
    await removeDirectory(directory);
  }
}

async function fuzz(schemathesis: string, directory: string): Promise<boolean> {
  // What is being tried is the API; how durable the quotes of a fuzzer are does not matter.
  const postgres = await startOwnPostgres({ fsync: 'off' });
  const withdraw = await offerOnDemand({ compiled: () => compileProduct(directory) });
  try {
    await migrateWithLogins(postgres.url);
    const key = await fill(postgres.url);
    const api = await startApiProcess({ databaseUrl: postgres.url });
    try {
      let clean = true;
      const given = await makeApplications(api, key);
      for (const path of Object.keys(document.paths))
        clean = (await attack(path, { schemathesis, directory, api, key, given })) && clean;
      return clean;
    } finally {
      await api.close();
    }
  } finally {
    await withdraw();
    await postgres.close();
  }
}

/** A partner, its key, and a merchant under each form of merchant id. */
async function fill(url: string): Promise<string> {
  const database = openDatabaseAt(url);
  try {
    await addMerchant(database, 'M100001', { products: [{}, {}] });
    await addMerchant(database, 'AB-1C2D-3E4F-5G6H', { products: [{}] });
    return (await addPartner(database, PARTNER_ID)).test;
  } finally {
    await database.close();
  }
}

/** Quotes, and simulated applications of the first: a generated id is never one that exists. Each quote has 20 at most. */
async function makeApplications(api: ApiProcess, apiKey: string): Promise<Record<string, string>> {
  const apiUrl = `https://127.0.0.1:${api.port}`;
  const partner = connectPartner({ apiUrl, ca: api.ca, partnerId: PARTNER_ID, apiKey });
  const { client } = partner;
  try {
    const finance = { loan_amount: '900.00', merchant_finance_url: 'https://shop.example/' };
    const input = { merchant_id: 'M000001', ...finance };
    const quotes: string[] = [];
    while (quotes.length < 100) quotes.push((await client.quote(input)).service_quote_id);
    const applications: string[] = [];
    while (applications.length < 20)
      applications.push(
        (await client.simulateApplication({ service_quote_id: quotes[0] ?? '' })).credit_application_id,
      );
    return { FUZZ_QUOTES: quotes.join(','), FUZZ_APPLICATIONS: applications.join(',') };
  } finally {
    await partner.close();
  }
}

interface Attack {
  /** The program. */
  readonly schemathesis: string;
  readonly directory: string;
  readonly api: ApiProcess;
  readonly key: string;
  /** Environment variables for hooks.py. */
  readonly given: Record<string, string>;
}

async function attack(path: string, { schemathesis, directory, api, key, given }: Attack): Promise<boolean> {
  const cases = casesOf(path);
  const ca = join(directory, 'ca.pem');
  writeFileSync(ca, api.ca);
  const startedMs = performance.now();
  const passed = await succeeds(
    schemathesis,
    [
      `--config-file=${join(__dirname, 'schemathesis.toml')}`,
      'run',
      `https://127.0.0.1:${api.port}/openapi.json`,
      `--header=Authorization: Bearer ${key}`,
      `--tls-verify=${ca}`,
      `--max-examples=${cases}`,
      `--include-path=${path}`,
      '--no-color',
    ],
    {
      // It writes a cache into the folder it runs in.
      cwd: directory,
      environment: {
        HYPOTHESIS_STORAGE_DIRECTORY: join(directory, 'hypothesis'),
        SCHEMATHESIS_HOOKS: join(__dirname, 'hooks.py'),
        ...given,
        FUZZ_PARTNER_ID: PARTNER_ID,
        FUZZ_MERCHANTS: MERCHANTS.join(','),
        REQUESTS_CA_BUNDLE: ca,
      },
    },
  );
  const { statuses, total, slow } = await readCounts(api.internalPort, path);
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(0);
  console.log(
    `\nfuzz: ${total} requests to ${path} in ${seconds} s, ${slow} of them longer than a second; answers:`,
  );
  for (const [status, count] of statuses) console.log(`  ${status}: ${count}`);
  const faults = api
    .output()
    .split('\n')
    .filter((line) => /"level":(50|60)/.test(line));
  for (const line of faults.slice(0, 10)) console.log(`fuzz: the API logged ${line}`);
  const least = path.includes('{') ? cases / 4 : cases;
  const enough = total >= least;
  if (!enough) console.log(`fuzz: fewer cases than the ${least} asked for`);
  return passed && enough && faults.length === 0;
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});

/** What the metrics of an API process say of a path: answers by status, all of them, and how many took longer than a second. */
async function readCounts(internalPort: number, path: string) {
  const route = `route="${path.replaceAll(/[{}]/g, String.raw`\$&`)}"`;
  const text = await (await fetch(`http://127.0.0.1:${internalPort}/metrics`)).text();
  const all = (pattern: string) =>
    [...text.matchAll(new RegExp(`^pfqs_http_request_seconds_${pattern}`, 'gm'))].map(
      ([, status = '', count]) => [status, Number(count)] as const,
    );
  const statuses = all(`count\\{${route},status="(\\d+)"\\} (\\d+)$`);
  const sum = (counts: typeof statuses) => counts.reduce((so, [, count]) => so + count, 0);
  const total = sum(statuses);
  return { statuses, total, slow: total - sum(all(`bucket\\{le="1",${route},status="(\\d+)"\\} (\\d+)$`)) };
}

/**
 * The folder of the virtual environment's programs: in the user's cache, outside of the repository. Made on the first
 * run, which takes a minute.
 * @throws when there is no Python, or PyPI cannot be reached.
 */
function pythonPrograms(): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? (homedir() === '/' ? tmpdir() : join(homedir(), '.cache'));
  const venv = join(cache, 'pfqs-fuzz', PACKAGES.join('_').replaceAll('==', '-'));
  const programs = join(venv, 'bin');
  // Written last: what an interrupted run left behind is made anew.
  const complete = join(venv, 'complete');
  if (existsSync(complete)) return programs;
  console.log(`fuzz: installing ${PACKAGES.join(', ')} into ${venv}`);
  mkdirSync(venv, { recursive: true });
  const run = (program: string, args: string[]) => execFileSync(program, args, { stdio: 'inherit' });
  try {
    run('python3', ['-m', 'venv', '--clear', venv]);
    run(join(programs, 'pip'), ['install', '--quiet', '--disable-pip-version-check', ...PACKAGES]);
  } catch (error) {
    throw new Error('fuzz: needs python3 (3.10 or later, with its module venv) and PyPI on the first run', {
      cause: error,
    });
  }
  writeFileSync(complete, '');
  return programs;
}

/** Runs a program in `cwd`, shows what it prints, and waits for its end. @returns whether it ended with 0. */
async function succeeds(
  program: string,
  args: readonly string[],
  options: { cwd: string; environment?: Record<string, string> },
): Promise<boolean> {
  const child = spawn(program, args, {
    cwd: options.cwd,
    // No .pyc beside hooks.py.
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...options.environment },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return code === 0;
}
