import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { connectDatabase, type Database } from '../../../../db/postgres/connect';
import { startTcpProxy } from '../../../support/tcp-proxy';
import { createTestDatabase, type TestDatabase } from '../../../support/database';

let clone: TestDatabase;
let database: Database;
let other: Database;
const uncaught: unknown[] = [];
const note = (error: unknown) => void uncaught.push(error);

beforeAll(async () => {
  clone = await createTestDatabase();
  const connect = (poolSize: number) =>
    connectDatabase({ url: clone.url, poolSize, applicationName: 'test', statementTimeoutMs: 5_000 });
  database = connect(1);
  other = connect(1);
  process.on('uncaughtException', note);
});

afterAll(async () => {
  process.off('uncaughtException', note);
  await database.close();
  await other.close();
  await clone.close();
});

afterEach(() => expect(uncaught).toEqual([]));

async function pidOf(tx: Pick<Database['db'], 'execute'>): Promise<number> {
  const [row] = await tx.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`);
  return row?.pid ?? 0;
}

const end = async (pid: number) => {
  await other.sql`select pg_terminate_backend(${pid}, 10000)`;
  // Its process has gone; the news is on its way here.
  await sleep(200);
};

test('a connection that is lost between two statements rejects the transaction, and the pool goes on', async () => {
  const lost = database.db.transaction(async (tx) => {
    await end(await pidOf(tx));
    await tx.execute(sql`select 2`);
  });
  await expect(lost).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
  await sleep(50);
  expect(await database.sql`select 1 as one`).toEqual([{ one: 1 }]);
  expect(await database.db.transaction((tx) => tx.execute(sql`select 3 as three`))).toEqual([{ three: 3 }]);
});

test.each([false, true])(
  'so does one that is lost during a statement (in a savepoint: %s)',
  async (nested) => {
    const lost = database.db.transaction(async (tx) => {
      const pid = await pidOf(tx);
      setTimeout(() => void end(pid), 100);
      const wait = sql`select pg_sleep(4)`;
      await (nested ? tx.transaction((inner) => inner.execute(wait)) : tx.execute(wait));
    });
    await expect(lost).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
    await sleep(50);
    // postgres.js hands the last words of the old connection to the first statement of the next one.
    await database.sql`select 1`.catch((error: { code: string }) => expect(error.code).toBe('57P01'));
    expect(await database.sql`select 1 as one`).toEqual([{ one: 1 }]);
  },
);

test('so does one whose server falls silent, whatever it would do afterwards', async () => {
  const address = new URL(clone.url);
  const proxy = await startTcpProxy({ port: Number(address.port) });
  address.port = String(proxy.port);
  const behind = connectDatabase({
    url: address.href,
    poolSize: 1,
    applicationName: 'test',
    statementTimeoutMs: 200,
  });
  const hung = behind.db.transaction(async (tx) => {
    await tx.execute(sql`select 1`);
    proxy.freeze();
    await tx.execute(sql`select 2`).catch(() => sleep(50));
    await tx.execute(sql`select 3`);
  });
  await expect(hung).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
  await sleep(200);
  proxy.unfreeze();
  expect(await behind.sql`select 1 as one`).toEqual([{ one: 1 }]);
  await behind.close();
  await proxy.close();
});

test('what a transaction throws itself still rolls back', async () => {
  const failing = database.db.transaction(async (tx) => {
    await tx.execute(sql`create table rolled_back (a int)`);
    await tx.execute(sql`select 1 / 0`);
  });
  await expect(failing).rejects.toMatchObject({ cause: { code: '22012' } });
  const thrown = database.db.transaction(async (tx) => {
    await tx.execute(sql`create table rolled_back (a int)`);
    throw new Error('ours');
  });
  await expect(thrown).rejects.toThrow('ours');
  expect(await database.sql`select to_regclass('rolled_back') as found`).toEqual([{ found: null }]);
});
