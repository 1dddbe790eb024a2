import { setTimeout as sleep } from 'node:timers/promises';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import type { Sql } from './driver/client';

const MIGRATION_LOCK = 7_205_114_233;
const ASK_EVERY_MS = 250;

/**
 * Longest wait for the lock of a table: whoever writes to it afterwards waits as long. A transaction that
 * holds it, such as a backup, is waited for without a place in the queue.
 */
const LOCK_TIMEOUT_MS = 1_000;
const RETRY_MS = 2_000;
const GIVE_UP_MS = 900_000;

/** The lock is not available in time, or Postgres has found a deadlock with others. */
const LOCKED_OUT = new Set<unknown>(['55P03', '40P01']);

/** What takes as long as a table is large, holds up no write, and is no part of a transaction. */
const ONLINE = /\b(CONCURRENTLY|VALIDATE CONSTRAINT)\b/;

/**
 * Waits until no other migration runs. It asks again and again: a session that waits in Postgres has a
 * snapshot, for whose end `CREATE INDEX CONCURRENTLY` of the other one would wait.
 */
export async function takeMigrationLock(sql: Sql): Promise<void> {
  for (;;) {
    const [row] = await sql<{ mine: boolean }[]>`select pg_try_advisory_lock(${MIGRATION_LOCK}) as mine`;
    if (row?.mine === true) return;
    await sleep(ASK_EVERY_MS);
  }
}

/**
 * Applies the migrations of drizzle-kit that the database does not have, each in a transaction of its own.
 * One that builds indexes concurrently or validates constraints runs statement by statement instead; when
 * it is interrupted, the next call finishes it. Writes wait for a second at most.
 * @throws the error of a migration, which then is not recorded
 */
export async function applyMigrations(sql: Sql, folder: string): Promise<void> {
  await sql`create schema if not exists drizzle`;
  await sql`
    create table if not exists drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)`;
  const [last] = await sql`select max(created_at)::float8 as at from drizzle.__drizzle_migrations`;
  for (const { sql: parts, hash, folderMillis } of readMigrationFiles({ migrationsFolder: folder })) {
    if (folderMillis <= Number(last?.['at'] ?? 0)) continue;
    const text = parts.join('\n');
    const record = (on: Sql) =>
      on`insert into drizzle.__drizzle_migrations (hash, created_at) values (${hash}, ${folderMillis})`;
    if (ONLINE.test(text)) {
      for (const statement of statementsOf(text)) await runOnline(sql, statement);
      await record(sql);
    } else {
      await withShortLocks(sql, async (tx) => {
        // Lines of the change log are due at the end of a transaction, and no table can be changed before.
        await tx.unsafe('set constraints all immediate');
        await tx.unsafe(text);
        await record(tx);
      });
    }
  }
}

const statementsOf = (text: string) =>
  text
    .replaceAll(/--.*$/gm, '')
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');

/**
 * Runs a transaction that gives up its place when it does not get a lock soon, and tries again for `giveUpMs`.
 * @throws the last refusal of the lock
 */
export async function withShortLocks(
  sql: Sql,
  change: (tx: Sql) => Promise<void>,
  giveUpMs = GIVE_UP_MS,
): Promise<void> {
  const endsMs = performance.now() + giveUpMs;
  for (;;) {
    try {
      await sql.begin(async (tx) => {
        await tx.unsafe(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
        await change(tx as unknown as Sql);
      });
      return;
    } catch (error) {
      const locked = LOCKED_OUT.has((error as { code?: unknown }).code);
      if (!locked || performance.now() > endsMs) throw error;
    }
    await sleep(RETRY_MS);
  }
}

const runShort = (sql: Sql, statement: string) =>
  withShortLocks(sql, async (tx) => void (await tx.unsafe(statement)));

const INDEX = /^CREATE (UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS "(\w+)" ON "(\w+)" (.*)$/s;

async function runOnline(sql: Sql, statement: string): Promise<void> {
  const [, unique = '', index, table, definition] = INDEX.exec(statement) ?? [];
  if (index === undefined || table === undefined || definition === undefined) {
    await sql.unsafe(statement);
    return;
  }
  const [kind] = await sql`select relkind from pg_class where oid = ${table}::regclass`;
  if (kind?.['relkind'] !== 'p') return buildIndex(sql, `${unique}INDEX`, { index, table, definition });
  // Postgres builds no index of a partitioned table concurrently, but those of its partitions.
  await runShort(sql, `CREATE ${unique}INDEX IF NOT EXISTS "${index}" ON ONLY "${table}" ${definition}`);
  const partitions = await sql<{ name: string }[]>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table}::regclass order by 1`;
  for (const { name } of partitions) {
    // A month that was made meanwhile has it already, under a name of Postgres'.
    const [attached] = await sql`
      select from pg_inherits i join pg_index x on x.indexrelid = i.inhrelid
      where i.inhparent = ${index}::regclass and x.indrelid = ${name}::regclass`;
    if (attached !== undefined) continue;
    const own = `${index}${name.slice(table.length)}`;
    await buildIndex(sql, `${unique}INDEX`, { index: own, table: name, definition });
    await runShort(sql, `ALTER INDEX "${index}" ATTACH PARTITION "${own}"`);
  }
}

/** Builds an index, after removing what an interrupted call has left of it. */
async function buildIndex(
  sql: Sql,
  what: string,
  { index, table, definition }: Readonly<Record<'index' | 'table' | 'definition', string>>,
): Promise<void> {
  const [left] = await sql`
    select from pg_index where indexrelid = to_regclass(${`"${index}"`}) and not indisvalid`;
  if (left !== undefined) await sql.unsafe(`DROP INDEX CONCURRENTLY "${index}"`);
  await sql.unsafe(`CREATE ${what} CONCURRENTLY IF NOT EXISTS "${index}" ON "${table}" ${definition}`);
}
