import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import postgres from 'postgres';
import { migrateDatabase } from '../../../db/postgres/migrate';
import { PROCESSES, roleOf } from '../../../db/postgres/roles';
import { reportLogin } from '../../../runtime/login';
import { createLogger } from '../../../runtime/telemetry/logger';
import { startApiProcess } from '../../support/api-process';
import { openDatabaseAt } from '../../support/database';
import { until } from '../../../testbed/until';
import { startOwnPostgres, type OwnPostgres } from '../../../testbed/own-postgres';
import { asRole, migrateWithLogins } from '../../../testbed/roles';

let server: OwnPostgres;
let administrator: postgres.Sql;
const urlOf = (database: string, login = 'postgres') =>
  Object.assign(new URL(server.url), { pathname: `/${database}`, username: login }).href;

beforeAll(async () => {
  server = await startOwnPostgres({ fsync: 'off' });
  administrator = postgres(server.url, { max: 1, onnotice: () => undefined });
  const password = decodeURIComponent(new URL(server.url).password);
  await administrator.unsafe(`create role plain login password '${password}'`);
  await administrator.unsafe(`create role other login password '${password}'`);
  await administrator.unsafe('create database plain owner plain');
});
afterAll(async () => {
  await administrator.end();
  await server.close();
});

const roles = async () =>
  (await administrator`select rolname::text as name from pg_roles where rolname ~ '^quotes_' order by 1`).map(
    ({ name }) => name as string,
  );

test('one login that may not create roles runs everything, and the log says what is not separated', async () => {
  const url = urlOf('plain', 'plain');
  const api = await startApiProcess({
    databaseUrl: url,
    environment: { DATABASE_URL: url },
    args: ['--migrate'],
  });
  try {
    expect(await api.readyStatus()).toBe(200);
    expect(await roles()).toEqual([]);
    // What is logged may reach us after it serves.
    const roleless = 'migrate: this login may not create the roles quotes_api, quotes_worker, quotes_ops';
    await until(() => api.output().includes(roleless), 'the line of the migration');
    const notSeparated =
      /"level":40,[^\n]*the database login is not separated from the other processes: it owns the tables, so it may change the schema; it may rewrite the change log/;
    await until(() => notSeparated.test(api.output()), 'the line of the login');
  } finally {
    await api.close();
  }
});

test('another login does not migrate what belongs to somebody else, and is told whose it is', async () => {
  await expect(migrateDatabase(urlOf('plain', 'other'))).rejects.toThrow(
    /belongs to plain, and this login is other; nothing was changed/,
  );
});

test('a login without the rights of its process is named in the log, with what to grant', async () => {
  const lines: string[] = [];
  const logger = createLogger(
    { LOG_LEVEL: 'info' },
    new Writable({ write: (line: Buffer, _, done) => (lines.push(String(line)), done()) }),
  );
  const database = openDatabaseAt(urlOf('plain', 'other'));
  await reportLogin(database.sql, 'worker', { logger, production: true, timeoutMs: 5_000 });
  await database.close();
  expect(lines).toEqual([
    expect.stringMatching(/"level":50.*may not do what this process has to: grant quotes_worker to it/),
    expect.stringMatching(/"level":40.*it may take any lock .* run init\.sh withhold/),
  ]);
});

test('migrations of two databases of one server at the same moment create the roles once', async () => {
  expect(await roles()).toEqual([]);
  const names = ['one', 'two', 'three', 'four'];
  for (const name of names) await administrator.unsafe(`create database ${name}`);
  const answers = await Promise.all(
    names.flatMap((name) => [name, name]).map((name) => migrateDatabase(urlOf(name))),
  );
  expect(answers).toMatchObject(answers.map(() => ({ notSeparated: [] })));
  expect(await roles()).toEqual(PROCESSES.map(roleOf).toSorted());
});

test('roles that come later are taken up by the next migration, by the same login', async () => {
  expect(await migrateDatabase(urlOf('plain', 'plain'))).toMatchObject({ notSeparated: [] });
  await migrateWithLogins(urlOf('one'));
  const worker = postgres(asRole(urlOf('plain'), 'worker'), { max: 1 });
  expect(await worker`select count(*)::int as n from webhook_secrets`).toEqual([{ n: 0 }]);
  await expect(worker`create table mine (id int)`).rejects.toThrow('permission denied');
  await worker.end();
});

test('the limits of the logins are together fewer than the connections of the compose file and of the cluster', () => {
  const text = (file: string) => readFileSync(join(__dirname, '../../..', file), 'utf8');
  const limits = [
    ...text('deploy/postgres/init.sh').matchAll(/^create role (\w+) .*connection limit (\d+);$/gm),
  ];
  expect(limits.map(([, login]) => login)).toEqual(['quotes', ...PROCESSES.map(roleOf), 'temporal']);
  const sum = limits.reduce((total, [, , limit]) => total + Number(limit), 0);
  for (const file of ['docker-compose.yml', 'deploy/cluster/patroni.yml']) {
    const [, most] = /max_connections[:=] ?(\d+)/.exec(text(file)) ?? [];
    // Some are left for superusers, backups and standbys.
    expect(sum).toBeLessThanOrEqual(Number(most) - 20);
  }
});
