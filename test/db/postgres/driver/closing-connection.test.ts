import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabaseAt, useDatabase } from '../../../support/database';

const STATEMENT_TIMEOUT_MS = 100;
/** After that a silent connection is closed: db/postgres/connect.ts. */
const QUIET_MS = STATEMENT_TIMEOUT_MS + 2_000;
const database = useDatabase({ poolSize: 1, statementTimeoutMs: STATEMENT_TIMEOUT_MS });

test('a statement made while its connection is being closed is answered or refused, not lost', async () => {
  await database.sql`select 1`;
  const made = new Promise((settled) => {
    setTimeout(() => void database.sql`select 1`.then(settled, settled), QUIET_MS + 50);
  });
  // This process is frozen for longer than a silent connection is kept, and finds two timers due at once: first its connection is
  // given up, then it is used.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, QUIET_MS + 500);
  await made;
  await expect(database.sql`select 2 as two`).resolves.toMatchObject([{ two: 2 }]);
}, 15_000);

test('statements made up to the moment a connection closes do not keep it from opening again', async () => {
  const other = openDatabaseAt(database.url);
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
