import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectDatabase, type Database } from '../../../../db/postgres/connect';
import { REPAIRED_RELEASE, type Sql } from '../../../../db/postgres/driver/client';
import { createTestDatabase, type TestDatabase } from '../../../support/database';
import { enableTls, startOwnPostgres } from '../../../support/postgres-server';
import { createTestTls } from '../../../support/tls';

/** No two transactions, and no transaction and another statement, may ever share a connection (porsager/postgres#1204, #1189, #823). */

let clone: TestDatabase;
let other: Sql;
const opened: Database[] = [];

function connect(poolSize: number, url = clone.url): Sql {
  const database = connectDatabase({ url, poolSize, applicationName: 'test', statementTimeoutMs: 5_000 });
  opened.push(database);
  return database.sql;
}
beforeAll(async () => {
  clone = await createTestDatabase();
  other = connect(1);
  await other`create table written (by text not null)`;
});
afterEach(() => other`delete from written`);
afterAll(async () => {
  await Promise.all(opened.map((database) => database.close()));
  await clone.close();
});

const openTransactions = async () => [
  ...(await other`select pid from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`),
];

test('the installed release of postgres.js is the one that was repaired', () => {
  const { version } = JSON.parse(readFileSync('node_modules/postgres/package.json', 'utf8')) as {
    version: string;
  };
  const advice =
    version === REPAIRED_RELEASE ? '' : `postgres.js ${version}: see db/postgres/driver/README.md`;
  expect(advice).toBe('');
});

test.each(['commit', 'rollback'])(
  'a transaction that was lost does not %s the next one of its connection',
  async (ending) => {
    const sql = connect(1);
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const lost = sql.begin(async (tx) => {
      const [row] = await tx`select pg_backend_pid() as pid`;
      await other`select pg_terminate_backend(${row?.['pid'] as number}, 10000)`;
      await gate;
      if (ending === 'rollback') throw new Error('the first one fails');
    });
    await expect(lost).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
    // The last words of the connection that was lost.
    await sql`select 1`.catch(() => undefined);
    const next = sql.begin(async (tx) => {
      await tx`insert into written values ('next')`;
      open();
      await sleep(200);
      if (ending === 'commit') throw new Error('the next one fails');
      await tx`insert into written values ('next')`;
    });
    const outcome = await next.then(() => 'committed', String);
    expect(outcome).toBe(ending === 'commit' ? 'Error: the next one fails' : 'committed');
    expect(await other`select by from written`).toHaveLength(ending === 'commit' ? 0 : 2);
  },
);

test.each([1, 2])(
  'a transaction that queues at the end of %s full pipelines has its connection',
  async (size) => {
    const sql = connect(size);
    const busy = () => Array.from({ length: size }, () => sql.unsafe('select pg_sleep(0.3)').execute());
    await Promise.all(busy());
    const queued = busy();
    await sleep(100);
    // 100 to a connection: its bound, unless another is given (max_pipeline).
    for (let at = 0; at < 99 * size; at += 1) queued.push(sql.unsafe('select 1').execute());
    const committed = await sql.begin(async (tx) => {
      await tx`insert into written values ('it')`;
      return 'committed';
    });
    expect(committed).toBe('committed');
    await Promise.all(queued);
    expect(await openTransactions()).toEqual([]);
    expect(await other`select by from written`).toHaveLength(1);
  },
);

test('a transaction with large statements over TLS keeps its connection', async () => {
  const server = await startOwnPostgres();
  await enableTls(server, await createTestTls([{ type: 'dns', value: 'localhost' }]));
  const sql = connect(1, `${server.url}?sslmode=require`);
  const strangers: unknown[] = [];
  for (let round = 0; round < 20; round += 1) {
    let under = true;
    const one = sql.begin(async (tx) => {
      await tx`select set_config('pfqs.tx', 'one', true)`;
      for (let size = 1; size < 4_000_000; size *= 4) {
        await tx`select length(${'x'.repeat(size)})`;
        await sleep(1);
      }
    });
    const stranger = (async () => {
      while (under) {
        const [row] = await sql`select current_setting('pfqs.tx', true) as tx`;
        if (row?.['tx']) strangers.push(row['tx']);
        await sleep(1);
      }
    })();
    await one.finally(() => (under = false));
    await stranger;
  }
  expect(strangers).toEqual([]);
  await opened.pop()?.close();
  await server.close();
});
