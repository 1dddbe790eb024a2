import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { migrateDatabase } from '../../db/postgres/migrate';
import { startApiProcess } from '../support/api-process';
import { startOwnPostgres, type OwnPostgres } from '../../testbed/own-postgres';

let server: OwnPostgres;
let sql: postgres.Sql;
beforeAll(async () => {
  server = await startOwnPostgres({ fsync: 'off' });
  sql = postgres(server.url, { max: 1, onnotice: () => undefined });
});
afterAll(async () => {
  await sql.end();
  await server.close();
});

const files = readdirSync(join(__dirname, '../../db/migrations')).filter((name) => name.endsWith('.sql'));

async function applied(url: string): Promise<number> {
  const client = postgres(url, { max: 1 });
  const rows = await client`select hash from drizzle.__drizzle_migrations`;
  await client.end();
  return rows.count;
}

test('two processes that boot with --migrate on an empty database: one applies, both serve', async () => {
  const start = () =>
    startApiProcess({
      databaseUrl: server.url,
      environment: { DATABASE_URL: server.url },
      args: ['--migrate'],
    });
  const apis = await Promise.all([start(), start()]);
  for (const api of apis) {
    expect(await api.readyStatus()).toBe(200);
    expect(api.output()).not.toMatch(/"level":(50|60)/);
    await api.close();
  }
  expect(await applied(server.url)).toBe(files.length);
});

test('a database of an earlier build is refused with what to do, and left as it is', async () => {
  await sql`create database earlier`;
  const url = new URL(server.url);
  url.pathname = '/earlier';
  await migrateDatabase(url.href);
  const client = postgres(url.href, { max: 1 });
  await client`update drizzle.__drizzle_migrations set hash = 'of-an-earlier-build'`;
  const contents = () =>
    client`select relname, relnatts from pg_class where relnamespace = 'public'::regnamespace order by 1`;
  const before = await contents();
  await expect(migrateDatabase(url.href)).rejects.toThrow(
    /before 0\.1\.0.*nothing in it was changed.*DATA_DIR/s,
  );
  expect([...(await contents())]).toEqual([...before]);
  expect(await applied(url.href)).toBe(files.length);
  await client.end();
});

test('a migrator killed while it holds the lock does not keep the next one out', async () => {
  await sql`create database killed`;
  const url = new URL(server.url);
  url.pathname = '/killed';
  const first = migrateDatabase(url.href).catch(() => 'killed');
  let ended = 0;
  for (let tries = 0; tries < 500 && ended === 0; tries += 1) {
    // Of the database's sessions: whichever holds an advisory lock.
    const rows = await sql`
      select pg_terminate_backend(l.pid) from pg_locks l join pg_database d on d.oid = l.database
      where l.locktype = 'advisory' and l.granted and d.datname = 'killed'`;
    ended = rows.count;
  }
  expect(ended).toBe(1);
  expect(await first).toBe('killed');
  await migrateDatabase(url.href);
  expect(await applied(url.href)).toBe(files.length);
});
