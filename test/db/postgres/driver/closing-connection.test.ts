import { setTimeout as sleep } from 'node:timers/promises';
import { connectDatabase, type Database, type Sql } from '../../../../db/postgres/connect';
import { createTestDatabase, type TestDatabase } from '../../../support/database';

const STATEMENT_TIMEOUT_MS = 100;
/** After that a silent connection is closed: db/postgres/connect.ts. */
const QUIET_MS = STATEMENT_TIMEOUT_MS + 2_000;
let clone: TestDatabase;
let database: Database;

beforeAll(async () => {
  clone = await createTestDatabase();
  database = connectDatabase({
    url: clone.url,
    poolSize: 1,
    applicationName: 'test',
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
});
afterAll(async () => {
  await database.close();
  await clone.close();
});

/**
 * Freezes this process for longer than a silent connection is kept, so that it finds two timers due at once: first its connection is
 * given up, then it is used.
 * @param quietMs after which a silent connection of `sql` is closed (db/postgres/connect.ts)
 * @returns whether a statement that is made just then is answered or refused
 */
async function statementAfterFreeze(sql: Sql, quietMs: number): Promise<'answered' | 'refused'> {
  await sql`select 1`;
  const made = new Promise<'answered' | 'refused'>((resolve) => {
    const make = () => {
      sql`select 1`.then(
        () => resolve('answered'),
        () => resolve('refused'),
      );
    };
    setTimeout(make, quietMs + 50);
  });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, quietMs + 500);
  return made;
}

test('a statement made while its connection is being closed is not lost', async () => {
  expect(await statementAfterFreeze(database.sql, QUIET_MS)).toMatch(/answered|refused/);
  await expect(database.sql`select 2 as two`).resolves.toMatchObject([{ two: 2 }]);
}, 15_000);

test('statements made up to the moment a connection closes do not keep it from opening again', async () => {
  const other = connectDatabase({
    url: clone.url,
    poolSize: 1,
    applicationName: 'test',
    statementTimeoutMs: 5_000,
  });
  const { sql } = database;
  const refused = new Set<string>();
  const refuse = (error: { code: string }) => void refused.add(error.code);
  for (let round = 0; round < 5; round += 1) {
    const answer = () => sql`select pg_backend_pid() as pid`;
    const [row] = await answer().catch(answer);
    // In the phase of setImmediate: the last one before sockets that have ended are closed.
    let stop = false;
    const statement = () => {
      if (stop) return;
      sql`select 1`.catch(refuse);
      setImmediate(statement);
    };
    statement();
    await other.sql`select pg_terminate_backend(${row?.['pid'] as number}, 10000)`;
    await sleep(100);
    stop = true;
    await sql`select 1`.catch(refuse);
  }
  expect(refused.size).toBeGreaterThan(0);
  // What is not repaired waits five seconds, and five again.
  expect(refused).not.toContain('CONNECT_TIMEOUT');
  await other.close();
}, 60_000);
