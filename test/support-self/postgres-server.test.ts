import postgres from 'postgres';
import { startOwnPostgres, type OwnPostgres } from '../support/postgres-server';

let server: OwnPostgres;
let sql: postgres.Sql;

beforeAll(async () => {
  server = await startOwnPostgres();
  sql = postgres(server.url, { max: 1, connect_timeout: 2, onnotice: () => undefined });
  await sql`create table rows (id int)`;
});

afterAll(async () => {
  await sql.end({ timeout: 1 });
  await server.close();
});

test('is durable', async () => {
  expect(await sql`show fsync`).toMatchObject([{ fsync: 'on' }]);
});

test('freezes with its sessions, and goes on where it was', async () => {
  await server.freeze();
  const answer = sql`insert into rows values (1) returning id`.then(() => 'answered');
  const patience = new Promise((resolve) => setTimeout(resolve, 300, 'silent'));
  expect(await Promise.race([answer, patience])).toBe('silent');
  await server.unfreeze();
  expect(await answer).toBe('answered');
});

test.each(['kill', 'stopImmediately', 'stop'] as const)('is back with its rows after %s', async (how) => {
  await sql`select 1`;
  await server[how]();
  await expect(sql`select 1`).rejects.toThrow(/\w/);
  await server.start();
  expect(await sql`select id from rows`).toMatchObject([{ id: 1 }]);
});
