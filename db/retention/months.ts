import { sql } from 'drizzle-orm';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { appendChange } from '../audit/change-log';
import { endOfTime, floorOf, type MonthlyKind } from './kinds';

/** Dropping waits for whoever uses the table, and whoever comes after waits behind it: no longer than this. */
const LOCK_TIMEOUT_MS = 500;
/** SQLSTATE: the lock was not to be had in time, or two waited for each other. */
const LOCKED_OUT = new Set(['55P03', '40P01']);

/** A partition all of whose rows are past their time. */
export interface ExpiredMonth {
  /** `quotes_2026_11` */
  readonly partition: string;
  /** `2026_11` */
  readonly month: string;
  /** Ids in it: from `low`, inclusive, to `high`. */
  readonly low: string;
  readonly high: string;
}

/** The months whose last day is past its time, oldest first. */
export async function expiredMonths(
  db: DbOrTransaction,
  { table, prefix }: MonthlyKind,
  days: number,
): Promise<ExpiredMonth[]> {
  const rows = await db.execute(sql`
    select partition, month, ${prefix}::text || ulid_floor(begins) as low,
      ${prefix}::text || ulid_floor(begins + interval '1 month') as high
    from (
      select c.relname::text as partition, right(c.relname, 7) as month,
        to_date(right(c.relname, 7), 'YYYY_MM')::timestamp at time zone 'UTC' as begins
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = ${table}::regclass and c.relname ~ ('^' || ${table}::text || '_[0-9]{4}_[0-9]{2}$')) m
    where begins + interval '1 month' <= ${endOfTime(days)}
    order by month`);
  return [...rows] as unknown as ExpiredMonth[];
}

/** Rows of a partition, counted one by one. */
export async function rowsOf(db: DbOrTransaction, partition: string): Promise<number> {
  const [row] = await db.execute<{ count: number }>(
    sql`select count(*)::float8 as count from ${sql.identifier(partition)}`,
  );
  return row?.count ?? 0;
}

/** Whether something in a month must stay. */
export async function hasToStay(
  db: DbOrTransaction,
  kind: MonthlyKind,
  { low, high }: ExpiredMonth,
): Promise<boolean> {
  const [row] = await db.execute<{ stays: boolean }>(sql`select ${kind.anyStays(low, high)} as stays`);
  return row?.stays ?? true;
}

/**
 * Drops a month as a whole, and writes it into the change log with it. What is in it is counted beforehand, as a dry run would,
 * and again once nobody can write to it: only a month that has not changed since goes, and only if its rows, whatever its
 * name says, are all past their time.
 * @returns `stays` when something in it must; `busy` when the locks were not to be had in half a second, or it has changed.
 */
export async function dropMonth(
  db: Db,
  kind: MonthlyKind,
  month: ExpiredMonth,
  { days, actor }: { readonly days: number; readonly actor: string },
): Promise<{ readonly rows: number } | 'stays' | 'busy'> {
  if (await hasToStay(db, kind, month)) return 'stays';
  // Before anything is locked.
  const rows = await rowsOf(db, month.partition);
  try {
    return await db.transaction(async (tx) => {
      await tx.execute(sql.raw(`set local lock_timeout = '${LOCK_TIMEOUT_MS}ms'`));
      const locked = [...(await beside(tx, kind, month)), month.partition];
      // Readers go on; a writer of this month would have to wait.
      const names = sql.join(
        locked.map((name) => sql.identifier(name)),
        sql`, `,
      );
      await tx.execute(sql`lock table ${names} in share row exclusive mode`);
      if ((await hasToStay(tx, kind, month)) || !(await isPast(tx, kind, month, days))) return 'stays';
      if ((await rowsOf(tx, month.partition)) !== rows) return 'busy';
      await tx.execute(sql`drop table ${sql.identifier(month.partition)}`);
      const change = { actor, action: 'retention.drop', subject: month.partition, details: { rows } };
      await appendChange(tx, change);
      return { rows };
    });
  } catch (error) {
    if (LOCKED_OUT.has(sqlState(error))) return 'busy';
    throw error;
  }
}

/** Whether the newest row of a month is past its time. */
async function isPast(
  tx: DbOrTransaction,
  { idColumn, prefix }: MonthlyKind,
  { partition }: ExpiredMonth,
  days: number,
): Promise<boolean> {
  const [row] = await tx.execute<{ past: boolean }>(sql`
    select coalesce(max(${sql.identifier(idColumn)}) < ${floorOf(prefix, days)}, true) as past
    from ${sql.identifier(partition)}`);
  return row?.past ?? false;
}

/** The month of the table that says what must stay, where that is another one and still there. */
async function beside(tx: DbOrTransaction, kind: MonthlyKind, { month }: ExpiredMonth): Promise<string[]> {
  if (kind.alsoLocks === null) return [];
  const name = `${kind.alsoLocks}_${month}`;
  const [row] = await tx.execute<{ there: boolean }>(sql`select to_regclass(${name}) is not null as there`);
  return row?.there ? [name] : [];
}

/**
 * Deletes some of the rows of a partition that are past their time and need not stay, oldest first.
 * @returns how many went; fewer ids than `limit` mean that there are no more.
 */
export async function deleteBatch(
  db: Db,
  kind: MonthlyKind,
  partition: string,
  { days, limit }: { days: number; limit: number },
): Promise<{ readonly ids: number; readonly rows: number }> {
  const [from, id] = [sql.identifier(partition), sql.identifier(kind.idColumn)];
  const [row] = await db.execute<{ ids: number; rows: number }>(sql`
    with old as (
      select distinct t.${id} as id from ${from} t
      where t.${id} < (select ${floorOf(kind.prefix, days)}) and not (${kind.stays})
      order by 1 limit ${limit}),
    gone as (delete from ${from} t using old where t.${id} = old.id returning 1)
    select (select count(*)::int from old) as ids, (select count(*)::int from gone) as rows`);
  return row ?? { ids: 0, rows: 0 };
}

/** drizzle wraps what the driver throws. */
function sqlState(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === 'string') return code;
  return cause === undefined ? '' : sqlState(cause);
}
