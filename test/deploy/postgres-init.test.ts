import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { startPostgres, type RunningPostgres } from '../../dev/postgres';
import { freePort } from '../../dev/ports';
import { until } from '../../testbed/until';
import { fileNeeds } from '../support/needs';
import { startProgram } from '../../testbed/project-process';
import { runDirectory } from '../../testbed/temporary-directory';

/** The script that makes production's logins, run by the real psql on an empty server. */
fileNeeds('Postgres');

const directory = runDirectory('init');
const dataDir = join(directory, 'data');
const PASSWORDS = {
  QUOTES_DB_PASSWORD: `owner's "pass" \\word`,
  QUOTES_API_DB_PASSWORD: 'api-pässword $HOME',
  QUOTES_WORKER_DB_PASSWORD: 'worker:password',
  QUOTES_OPS_DB_PASSWORD: 'ops password',
  TEMPORAL_DB_PASSWORD: '--temporal=password',
};
let server: RunningPostgres;
let port: number;

beforeAll(async () => {
  port = await freePort();
  // It logs all that it is asked.
  const settings = { fsync: 'off', log_statement: 'all', log_min_duration_statement: 0 };
  server = await startPostgres({ dataDir, port, password: 'superuser', settings });
});
afterAll(() => server?.stop());

/** The arguments of every process of this machine. */
const commandLines = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8')];
      } catch {
        // It has ended.
        return [];
      }
    });

const runInit = (args: readonly string[], passwords: Record<string, string>) =>
  startProgram(['bash', join(__dirname, '../../deploy/postgres/init.sh'), ...args], {
    env: {
      ...process.env,
      ...passwords,
      POSTGRES_USER: 'postgres',
      PGHOST: '127.0.0.1',
      PGPORT: String(port),
      PGPASSWORD: 'superuser',
    },
  });

test('no password stands in an argument or in the log, and each opens its login', async () => {
  const admin = postgres(server.url, { max: 1, onnotice: () => undefined });
  const blocker = postgres(server.url, { max: 1, onnotice: () => undefined });
  const run = await blocker.begin(async (tx) => {
    // Whoever makes a role waits for this; whoever logs in does not.
    await tx`lock table pg_authid in share mode`;
    const run = runInit([], PASSWORDS);
    const waits = async () => {
      const waiting = await admin`
        select 1 from pg_stat_activity where application_name = 'psql' and wait_event_type = 'Lock'`;
      return waiting.length > 0;
    };
    await until(waits, 'psql makes the first role', 30_000);
    const seen = commandLines().filter((line) => line.includes('psql'));
    expect(seen).not.toEqual([]);
    for (const password of Object.values(PASSWORDS))
      for (const line of commandLines()) expect(line).not.toContain(password);
    return run;
  });
  expect([await run.ended, run.output()]).toEqual([0, expect.any(String)]);
  await blocker.end();

  const logins = await admin<{ rolname: string; rolconnlimit: number }[]>`
    select rolname, rolconnlimit from pg_roles where rolname ~ '^(quotes|temporal)' order by 1`;
  expect(logins.map(({ rolname }) => rolname)).toEqual([
    'quotes',
    'quotes_api',
    'quotes_ops',
    'quotes_worker',
    'temporal',
  ]);
  for (const [username, database, name] of [
    ['quotes', 'quotes', 'QUOTES_DB_PASSWORD'],
    ['temporal', 'temporal', 'TEMPORAL_DB_PASSWORD'],
  ] as const) {
    const own = postgres({ host: '127.0.0.1', port, username, database, password: PASSWORDS[name], max: 1 });
    expect(await own`select current_user::text as name`).toEqual([{ name: username }]);
    await own.end();
  }
  await admin.end();
  const log = readFileSync(`${dataDir}.log`, 'utf8');
  expect(log).toContain('revoke execute on function');
  for (const password of Object.values(PASSWORDS)) expect(log).not.toContain(password.replaceAll("'", "''"));
});

test('a database that took the place of the first is withheld from everybody, too', async () => {
  const admin = postgres(server.url, { max: 1, onnotice: () => undefined });
  await admin`alter database quotes rename to quotes_before`;
  await admin`create database quotes owner quotes`;
  const run = runInit(['withhold'], {});
  expect([await run.ended, run.output()]).toEqual([0, expect.any(String)]);
  const here = postgres({
    host: '127.0.0.1',
    port,
    user: 'postgres',
    password: 'superuser',
    database: 'quotes',
    max: 1,
  });
  const rights = await here`
    select has_function_privilege('quotes_api', 'pg_advisory_lock(bigint)', 'execute') as api,
      has_function_privilege('quotes', 'pg_advisory_lock(bigint)', 'execute with grant option') as owner`;
  expect(rights).toEqual([{ api: false, owner: true }]);
  await Promise.all([admin.end(), here.end()]);
});
