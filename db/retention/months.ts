import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { floorOf, type MonthlyKind } from './kinds';

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

/** The months whose last day is past its time by this clock, oldest first. A worker may read no row to know more. */
export async function expiredMonths(
  db: DbOrTransaction,
  { kind, table, prefix }: MonthlyKind,
): Promise<ExpiredMonth[]> {
  const rows = await db.execute(sql`
    select partition, month, ${prefix}::text || ulid_floor(begins) as low,
      ${prefix}::text || ulid_floor(begins + interval '1 month') as high
    from (
      select c.relname::text as partition, right(c.relname, 7) as month,
        to_date(right(c.relname, 7), 'YYYY_MM')::timestamp at time zone 'UTC' as begins
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = ${table}::regclass and c.relname ~ ('^' || ${table}::text || '_[0-9]{4}_[0-9]{2}$')) m
    where ${prefix}::text || ulid_floor(begins + interval '1 month') <= ${floorOf(kind)} collate "C"
    order by month`);
  return [...rows] as unknown as ExpiredMonth[];
}

/** Those of them that have begun, should the clock be wrong: something of them, or later, has been written. The others stay (drop_expired_month). */
export async function begunMonths(db: DbOrTransaction, kind: MonthlyKind): Promise<ExpiredMonth[]> {
  const months = await expiredMonths(db, kind);
  const [row] = await db.execute<{ newest: string | null }>(
    sql`select max(${sql.identifier(kind.idColumn)}) as newest from ${sql.identifier(kind.table)}`,
  );
  const newest = row?.newest ?? '';
  return months.filter(({ low }) => newest >= low);
}

export async function hasToStay(
  db: DbOrTransaction,
  { table }: MonthlyKind,
  { low, high }: ExpiredMonth,
): Promise<boolean> {
  const [row] = await db.execute<{ stays: boolean }>(
    sql`select exists (select from ids_that_stay(${table}, ${low}, ${high})) as stays`,
  );
  return row?.stays ?? true;
}

/**
 * Drops a month as a whole, and writes it into the change log with it (drop_expired_month).
 * @returns `stays` when something in it must; `busy` when the locks were not to be had in half a second, or it has changed
 *   since it was counted. @throws for what is no month, or not past its time.
 */
export async function dropMonth(
  db: DbOrTransaction,
  { table }: MonthlyKind,
  { month }: ExpiredMonth,
): Promise<{ readonly rows: number } | 'stays' | 'busy'> {
  try {
    const [row] = await db.execute<{ outcome: 'gone' | 'stays' | 'busy'; rows: number }>(sql`
      select outcome, rows::float8 as rows from drop_expired_month(${table}, ${month})`);
    if (row === undefined) throw new Error('drop_expired_month returned nothing');
    return row.outcome === 'gone' ? { rows: row.rows } : row.outcome;
  } catch (error) {
    if (LOCKED_OUT.has(sqlState(error))) return 'busy';
    throw error;
  }
}

/**
 * Deletes some of the rows of a partition that are past their time and need not stay, oldest first (delete_expired).
 * @returns how many went; fewer ids than `limit` mean that there are no more.
 */
export async function deleteBatch(
  db: DbOrTransaction,
  { table }: MonthlyKind,
  partition: string,
  limit: number,
): Promise<{ readonly ids: number; readonly rows: number }> {
  const [row] = await db.execute<{ ids: number; rows: number }>(
    sql`select ids, rows from delete_expired(${table}, ${partition}, ${limit}::int)`,
  );
  return row ?? { ids: 0, rows: 0 };
}

/** drizzle wraps what the driver throws. */
function sqlState(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === 'string') return code;
  return cause === undefined ? '' : sqlState(cause);
}
