import { join } from 'node:path';
import postgres from 'postgres';
import { migrateDatabase } from '../../db/postgres/migrate';
import { freePort } from '../../dev/ports';
import { startPostgres, type RunningPostgres } from '../../dev/postgres';
import { ensureDatabase, type Login } from '../../dev/stack/data';
import { runDirectory } from '../../testbed/temporary-directory';

/** The logins of `npm start` have the limits and rights of production's, which deploy/postgres/init.sh makes. */
const directory = runDirectory('stack-database');
const PASSWORDS: Record<Login, string> = {
  quotes: 'owner',
  quotes_api: 'api',
  quotes_worker: 'worker',
  quotes_ops: 'ops',
};
let server: RunningPostgres;
let urls: Awaited<ReturnType<typeof ensureDatabase>>;

beforeAll(async () => {
  const settings = { fsync: 'off' };
  const dataDir = join(directory, 'data');
  server = await startPostgres({ dataDir, port: await freePort(), password: 'superuser', settings });
  urls = await ensureDatabase(server.url, PASSWORDS);
  // The next start finds all of it.
  urls = await ensureDatabase(server.url, PASSWORDS);
  expect(await migrateDatabase(urls.migrate)).toMatchObject({ notSeparated: [] });
});
afterAll(() => server?.stop());

const as = async (url: string, statement: string) => {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return [...(await sql.unsafe(statement))];
  } catch (error) {
    return (error as { code?: string }).code;
  } finally {
    await sql.end();
  }
};

test('each login has its limit of connections', async () => {
  const limits = await as(
    server.url,
    `select rolname::text as login, rolconnlimit as most from pg_roles where rolname ~ '^quotes' order by 1`,
  );
  expect(limits).toEqual([
    { login: 'quotes', most: 10 },
    { login: 'quotes_api', most: 75 },
    { login: 'quotes_ops', most: 20 },
    { login: 'quotes_worker', most: 72 },
  ]);
});

test.each([
  'select pg_advisory_lock(1)',
  'select pg_try_advisory_xact_lock(1)',
  'select lo_create(0)',
  `select lo_from_bytea(0, 'x')`,
  `select pg_logical_emit_message(false, 'x', 'y')`,
])('the API may not %s', async (statement) => {
  expect(await as(urls.api, statement)).toBe('42501');
});

test.each(['postgres', 'template1'])('no login of the service enters %s', async (name) => {
  const url = new URL(urls.api);
  url.pathname = `/${name}`;
  expect(await as(url.href, 'select 1')).toBe('42501');
});

test('the worker takes the locks that it needs', async () => {
  expect(await as(urls.worker, 'select pg_try_advisory_xact_lock(1) as taken')).toEqual([{ taken: true }]);
});
