import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../../../db/postgres/connect';
import { startTestApi } from '../../../support/api';
import { catalogueFeed, openDatabaseAt } from '../../../support/database';
import { until } from '../../../../testbed/until';
import { enableTls, type OwnPostgres, startOwnPostgres } from '../../../../testbed/own-postgres';
import { runDirectory } from '../../../../testbed/temporary-directory';
import { createTestTls } from '../../../../testbed/tls';
import { migrateWithLogins } from '../../../../testbed/roles';

const STATEMENT_TIMEOUT_MS = 300;
const directory = runDirectory('server-tls');
let server: OwnPostgres;
let plain: OwnPostgres;
const opened: Database[] = [];

beforeAll(async () => {
  [server, plain] = await Promise.all([startOwnPostgres(), startOwnPostgres()]);
  const own = await createTestTls([{ type: 'dns', value: 'localhost' }]);
  await writeFile(join(directory, 'ca.pem'), own.ca);
  await writeFile(join(directory, 'other.pem'), (await createTestTls()).ca);
  await enableTls(server, own);
});
afterEach(() => Promise.all(opened.splice(0).map((database) => database.close())));
afterAll(async () => {
  await server?.close();
  await plain?.close();
});

/** @param host that the URL names; the certificate is for `localhost` alone. */
const urlOf = ({ url }: OwnPostgres, query: string, host = 'localhost') => {
  const address = new URL(url);
  address.hostname = host;
  return `${address.href}${query.replace(/(ca|other|renewed)\.pem/, (file) => join(directory, file))}`;
};
function connect(url: string): Database {
  const database = openDatabaseAt(url, { statementTimeoutMs: STATEMENT_TIMEOUT_MS });
  opened.push(database);
  return database;
}
const encrypted = async ({ sql }: Database) =>
  (await sql`select ssl from pg_stat_ssl where pid = pg_backend_pid()`)[0]?.['ssl'];

test.each([
  ['', 'localhost', false],
  ['?sslmode=disable', 'localhost', false],
  ['?sslmode=prefer', 'localhost', true],
  ['?sslmode=require', 'localhost', true],
  ['?sslmode=verify-ca&sslrootcert=ca.pem', '127.0.0.1', true],
  ['?sslmode=verify-full&sslrootcert=ca.pem', 'localhost', true],
])('%s at %s: with TLS is %s', async (query, host, expected) => {
  expect(await encrypted(connect(urlOf(server, query, host)))).toBe(expected);
});

test.each([
  ['?sslmode=verify-full', 'localhost', /certificate/],
  ['?sslmode=verify-full&sslrootcert=system', 'localhost', /certificate/],
  ['?sslmode=verify-full&sslrootcert=other.pem', 'localhost', /certificate/],
  ['?sslmode=verify-full&sslrootcert=ca.pem', '127.0.0.1', /IP: 127\.0\.0\.1 is not in the cert/],
  ['?sslmode=require&sslrootcert=other.pem', 'localhost', /certificate/],
])('%s at %s is refused, each time anew', async (query, host, why) => {
  const { sql } = connect(urlOf(server, query, host));
  for (let times = 0; times < 3; times += 1) await expect(sql`select 1`).rejects.toThrow(why);
});

test('an authority that is renewed in its file is trusted at the next connection', async () => {
  const file = (name: string) => join(directory, name);
  await copyFile(file('other.pem'), file('renewed.pem'));
  const { sql } = connect(urlOf(server, '?sslmode=verify-full&sslrootcert=renewed.pem'));
  await expect(sql`select 1`).rejects.toThrow(/certificate/);
  await copyFile(file('ca.pem'), file('renewed.pem'));
  expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
});

test('a server without TLS is refused, unless TLS is only preferred', async () => {
  const { sql } = connect(urlOf(plain, '?sslmode=require'));
  for (let times = 0; times < 3; times += 1)
    await expect(sql`select 1`).rejects.toThrow(/^Postgres at \S+:\d+ has no TLS/);
  expect(await encrypted(connect(urlOf(plain, '?sslmode=prefer')))).toBe(false);
});

test('a server that hangs holds a connection no longer than without TLS, and is used again', async () => {
  const { sql } = connect(urlOf(server, '?sslmode=require'));
  await sql`select 1`;
  await server.freeze();
  await expect(sql`select 1`).rejects.toThrow(/silent|gone/);
  await sleep(100);
  // A new connection does not come about either.
  await expect(sql`select 1`).rejects.toThrow(/^Postgres at \S+:\d+ did not answer within 5000 ms/);
  await server.unfreeze();
  await until(() => sql`select true`.then(Boolean, () => false), 'answers again');
});

test('schema, change feed and API work over a verified connection', async () => {
  const databaseUrl = urlOf(server, '?sslmode=verify-full&sslrootcert=ca.pem');
  await migrateWithLogins(databaseUrl);
  const heard: string[] = [];
  const feed = catalogueFeed(databaseUrl, (subject) => heard.push(subject));
  await until(() => feed.trusted(), 'the feed is trusted');
  const api = await startTestApi({ databaseUrl });
  try {
    expect(await api.quote({ merchant_id: 'M000001' })).toMatchObject({ status: 200 });
    await until(() => heard.length > 0, 'the new keys are told');
    const sessions = await connect(databaseUrl).sql`
      select application_name as name, ssl from pg_stat_activity join pg_stat_ssl using (pid) where application_name like 'pfqs%'`;
    expect(sessions.length).toBeGreaterThan(1);
    expect(sessions.filter(({ ssl }) => ssl !== true)).toEqual([]);
  } finally {
    await api.close();
    await feed.close();
  }
});
