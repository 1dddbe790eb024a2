import { sql } from 'drizzle-orm';
import { once } from 'node:events';
import { readFile } from 'node:fs';
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../../../db/postgres/connect';
import type { Sql } from '../../../../db/postgres/driver/client';
import { serverSocket } from '../../../../db/postgres/driver/server-socket';
import { standStill } from '../../../../testbed/until';
import { createTestDatabase, openDatabaseAt, type TestDatabase } from '../../../support/database';
import { needs } from '../../../support/needs';
import { startTcpProxy, type TcpProxy } from '../../../support/tcp-proxy';

/** No two transactions, and no transaction and another statement, may ever share a connection (porsager/postgres#1204, #1189, #823). */

let clone: TestDatabase;
let other: Sql;
/** Of one connection. */
let shared: Database;
const opened: Database[] = [];
const uncaught: unknown[] = [];
const note = (error: unknown) => void uncaught.push(error);

function open(poolSize: number, url = clone.url, statementTimeoutMs = 5_000, keepsIdle = false): Database {
  const database = openDatabaseAt(url, { poolSize, statementTimeoutMs, keepsIdle });
  opened.push(database);
  return database;
}
const connect = (poolSize: number, url?: string): Sql => open(poolSize, url).sql;
beforeAll(async () => {
  clone = await createTestDatabase();
  other = connect(1);
  shared = open(1);
  await other`create table written (by text not null)`;
  process.on('uncaughtException', note);
});
afterEach(async () => {
  await other`delete from written`;
  expect(uncaught).toEqual([]);
});
afterAll(async () => {
  process.off('uncaughtException', note);
  await Promise.all(opened.map((database) => database.close()));
  await clone.close();
});

async function behindProxy(statementTimeoutMs: number, keepsIdle = false) {
  const address = new URL(clone.url);
  const proxy = await startTcpProxy({ port: Number(address.port) });
  address.port = String(proxy.port);
  return { ...open(1, address.href, statementTimeoutMs, keepsIdle), proxy };
}

/** Its server is there again, and is reached over another connection. Closes both. */
async function answersAgain({ sql }: Pick<Database, 'sql'>, proxy: TcpProxy): Promise<void> {
  proxy.unfreeze();
  await sleep(100);
  await expect(sql`select 2 as two`).resolves.toMatchObject([{ two: 2 }]);
  await opened.pop()?.close();
  await proxy.close();
}

const openTransactions = async () => [
  ...(await other`select pid from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`),
];

needs('IPv6')('of a machine with IPv6', () => {
  test('a server is reached by its IPv6 address', async () => {
    const relay = createServer((client) => {
      const server = createConnection(Number(new URL(clone.url).port), '127.0.0.1');
      for (const [one, far] of [
        [client, server],
        [server, client],
      ] as const)
        one
          .on('error', () => undefined)
          .on('close', () => far.destroy())
          .pipe(far);
    }).listen(0, '::1');
    await once(relay, 'listening');
    const url = new URL(clone.url);
    url.host = `[::1]:${(relay.address() as AddressInfo).port}`;
    const database = openDatabaseAt(url.href, { poolSize: 1 });
    expect(await database.sql`select 1 as one`).toEqual([{ one: 1 }]);
    await database.close();
    relay.close();
  });
});

test.each(['commit', 'rollback'])('a lost transaction does not %s the next one', async (ending) => {
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
});

test.each([1, 2])('a transaction at the end of %s full pipelines has its connection', async (size) => {
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
});

async function pidOf(tx: Pick<Database['db'], 'execute'>): Promise<number> {
  const [row] = await tx.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`);
  return row?.pid ?? 0;
}

const endSession = async (pid: number) => {
  await other`select pg_terminate_backend(${pid}, 10000)`;
  // Its process has gone; the news is on its way here.
  await sleep(200);
};

test('a connection that is lost between two statements rejects the transaction, and the pool goes on', async () => {
  const lost = shared.db.transaction(async (tx) => {
    await endSession(await pidOf(tx));
    await tx.execute(sql`select 2`);
  });
  await expect(lost).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
  await sleep(50);
  expect(await shared.sql`select 1 as one`).toEqual([{ one: 1 }]);
  expect(await shared.db.transaction((tx) => tx.execute(sql`select 3 as three`))).toEqual([{ three: 3 }]);
});

test.each([false, true])('so does one that is lost in a statement (savepoint: %s)', async (nested) => {
  const lost = shared.db.transaction(async (tx) => {
    const pid = await pidOf(tx);
    setTimeout(() => void endSession(pid), 100);
    const wait = sql`select pg_sleep(4)`;
    await (nested ? tx.transaction((inner) => inner.execute(wait)) : tx.execute(wait));
  });
  await expect(lost).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
  await sleep(50);
  expect(await shared.sql`select 1 as one`).toEqual([{ one: 1 }]);
});

test('so does one whose server falls silent, whatever it would do afterwards', async () => {
  const { proxy, ...behind } = await behindProxy(200);
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
  await opened.pop()?.close();
  await proxy.close();
});

test('the FATAL error of a session rejects its statement, and none of the next session', async () => {
  const address = new URL(clone.url);
  const proxy = await startTcpProxy({ port: Number(address.port) });
  const database = address.pathname.slice(1);
  const admin = connect(1, Object.assign(new URL(address), { pathname: '/postgres' }).href);
  address.port = String(proxy.port);
  const sql = connect(1, address.href);
  const [row] = await sql`select pg_backend_pid() as pid`;
  setTimeout(() => void endSession(row?.['pid'] as number), 100);
  await expect(sql`select pg_sleep(4)`).rejects.toMatchObject({ code: '57P01', severity: 'FATAL' });
  await sleep(50);
  expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);

  setTimeout(() => proxy.cut(), 100);
  await expect(sql`select pg_sleep(4)`).rejects.toMatchObject({ code: 'ECONNRESET' });
  await sleep(50);
  await admin.unsafe(`alter database "${database}" allow_connections false`);
  await expect(sql`select 1`).rejects.toMatchObject({ code: '55000', severity: 'FATAL' });
  await admin.unsafe(`alter database "${database}" allow_connections true`);
  await sleep(50);
  expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
  await sql.end();
  await proxy.close();
});

/** Passes on what Postgres says in pieces of so many bytes, each by itself. */
async function startSlicer(port: number, bytes: number) {
  const server = createServer((client) => {
    const upstream = createConnection({ port }).setNoDelay();
    client.setNoDelay().pipe(upstream);
    const pieces: Buffer[] = [];
    upstream.on('data', (chunk: Buffer) => {
      for (let at = 0; at < chunk.length; at += bytes) pieces.push(chunk.subarray(at, at + bytes));
    });
    const timer = setInterval(() => {
      const piece = pieces.shift();
      if (piece !== undefined) client.write(piece);
      else if (upstream.destroyed) client.destroy();
    }, 1);
    client.on('error', () => undefined).on('close', () => void (clearInterval(timer), upstream.destroy()));
    upstream.on('error', () => undefined);
  }).listen(0);
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

test.each([1, 4, 5, 50])(
  'a FATAL error that arrives in pieces of %i bytes rejects its statement, and none of the next session',
  async (bytes) => {
    const address = new URL(clone.url);
    const slicer = await startSlicer(Number(address.port), bytes);
    address.port = String(slicer.port);
    const sql = connect(1, address.href);
    const [row] = await sql`select pg_backend_pid() as pid`;
    await expect(sql`select 1 / 0`).rejects.toMatchObject({ code: '22012' });
    setTimeout(() => void endSession(row?.['pid'] as number), 100);
    await expect(sql`select pg_sleep(4)`).rejects.toMatchObject({ code: '57P01', severity: 'FATAL' });
    await sleep(50);
    const text = 'x'.repeat(300);
    expect(await sql`select ${text} as text, n from generate_series(1, 3) n`).toEqual(
      [1, 2, 3].map((n) => ({ text, n })),
    );
    await sql.end();
    slicer.close();
  },
  20_000,
);

test.each([
  [[]],
  [['a']],
  [['a', '', ' ', 'null', 'NULL', null]],
  [['a,b', '{c}', '"', '\\', '\\"', "'", 'line\nfeed', 'ü€😀']],
])('text comes back from an array as it was sent: %j', async (texts) => {
  const [row] = await shared.sql`select ${texts}::text[] as texts, cardinality(${texts}::text[]) as count`;
  expect(row).toEqual({ texts, count: texts.length });
});

describe('a connection that closes', () => {
  const STATEMENT_TIMEOUT_MS = 100;
  /** After that a silent connection is closed: db/postgres/connect.ts. */
  const QUIET_MS = STATEMENT_TIMEOUT_MS + 2_000;
  let database: Database;
  beforeAll(() => void (database = open(1, clone.url, STATEMENT_TIMEOUT_MS)));

  /** This process is frozen for longer than a silent connection is kept. */
  const standStillForLong = () => standStill(QUIET_MS + 500);

  test('an answer that came while this process stood still is read, and its connection kept', async () => {
    const [before] = await database.sql`select pg_backend_pid() as pid`;
    const answer = database.sql`select pg_backend_pid() as pid, pg_sleep(0.05)`.execute();
    await sleep(20);
    // In the phase of sockets: timers that are due come next, and what has arrived after them.
    readFile(__filename, standStillForLong);
    expect(await answer).toMatchObject([{ pid: before?.['pid'] as number }]);
  });

  test('statements made about when their idle connections are closed are answered', async () => {
    const moments = [QUIET_MS - 1_000, QUIET_MS].flatMap((ms) =>
      Array.from({ length: 12 }, (_, nth) => ms - 1 + nth),
    );
    const answers = moments.map(async (ms) => {
      const { sql } = open(1, clone.url, STATEMENT_TIMEOUT_MS);
      await sql`select 1`;
      await sleep(ms);
      return sql`select 1 as one`;
    });
    for (const answer of await Promise.all(answers)) expect(answer).toEqual([{ one: 1 }]);
  });

  test('where idle connections are kept, statements made at any time are answered over them', async () => {
    const pids = Array.from({ length: 12 }, async (_, nth) => {
      const { sql } = open(1, clone.url, STATEMENT_TIMEOUT_MS, true);
      const before = await sql`select pg_backend_pid() as pid`;
      await sleep(QUIET_MS - 1 + nth);
      return [before, await sql`select pg_backend_pid() as pid`];
    });
    for (const [before, after] of await Promise.all(pids)) expect(after).toEqual(before);
  });

  test('a connection that falls silent between the answers to two statements is ended', async () => {
    const { proxy, ...behind } = await behindProxy(STATEMENT_TIMEOUT_MS);
    await behind.sql`select 1`;
    const both = [behind.sql`select 1 as one`, behind.sql`select pg_sleep(0.09)`];
    expect(await Promise.race(both)).toEqual([{ one: 1 }]);
    proxy.freeze();
    await expect(both[1]).rejects.toThrow('silent');
    await answersAgain(behind, proxy);
  });

  test('so is one that was idle for long, and falls silent while a statement is prepared', async () => {
    const { proxy, ...behind } = await behindProxy(STATEMENT_TIMEOUT_MS, true);
    await behind.sql`select 1`;
    await sleep(QUIET_MS + 100);
    proxy.freeze();
    await expect(behind.sql`select ${'it'} as it`).rejects.toThrow('silent');
    await answersAgain(behind, proxy);
  });

  test('a statement made as its silent connection is ended is refused, not lost', async () => {
    const { proxy, ...behind } = await behindProxy(STATEMENT_TIMEOUT_MS);
    await behind.sql`select 1`;
    proxy.freeze();
    const hung = behind.sql`select 1`.catch(() => 'refused');
    await sleep(20);
    const made = new Promise((settled) => {
      const make = () => void behind.sql`select 1`.then(settled, () => settled('refused'));
      // Right after the timer that ends the connection.
      setTimeout(() => setTimeout(make), QUIET_MS + 50);
    });
    standStillForLong();
    expect(await Promise.all([hung, made])).toEqual(['refused', 'refused']);
    await answersAgain(behind, proxy);
  });

  test('an idle connection to a host that is gone keeps its place in the pool no longer than a silent one', async () => {
    const { proxy, ...behind } = await behindProxy(STATEMENT_TIMEOUT_MS);
    await behind.sql`select 1`;
    proxy.lose();
    await sleep(QUIET_MS + 200);
    const before = performance.now();
    await behind.sql`select 1`;
    expect(performance.now() - before).toBeLessThan(500);
    await opened.pop()?.close();
    await proxy.close();
  });

  test('statements made up to the moment a connection closes do not keep it from opening again', async () => {
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
      await other`select pg_terminate_backend(${row?.['pid'] as number}, 10000)`;
      await sleep(100);
      stop = true;
      await sql`select 1`.catch(refuse);
    }
    expect(refused.size).toBeGreaterThan(0);
    // What is not repaired waits five seconds, and five again.
    expect(refused).not.toContain('CONNECT_TIMEOUT');
  });
});

test('the back pressure of a socket to a server is neither reported nor announced to be over', async () => {
  const accepted: Socket[] = [];
  const server = createServer((socket) => accepted.push(socket.pause())).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const at = { host: ['127.0.0.1'], port: [port] };
  const socket = (await serverSocket(`postgres://u@127.0.0.1:${port}/d`, 0).socket(at)) as Socket;
  let drained = false;
  socket.on('drain', () => (drained = true));
  // More than the kernel takes; its first four bytes are its length, as of every first message.
  const message = Buffer.alloc(32 * 1024 * 1024);
  message.writeUInt32BE(message.length);
  expect(socket.write(message)).toBe(true);
  expect(socket.writableNeedDrain).toBe(true);
  await once(socket, 'connect');
  await sleep(20);
  accepted[0]?.resume();
  while (socket.writableLength > 0) await sleep(10);
  await sleep(20);
  for (const one of [socket, ...accepted]) one.destroy();
  server.close();
  expect(drained).toBe(false);
});
