import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import {
  addRemoved,
  type RemovedByPeriod,
  type RetentionKind,
  type RetentionTask,
} from '../../domain/retention';
import type { Db, DbOrTransaction } from '../postgres/connect';

/** A kind whose rows go, by whole months where that is possible. What must stay is decided by ids_that_stay() in the database. */
export interface MonthlyKind {
  readonly kind: Exclude<RetentionKind, 'payloads'>;
  /** Partitioned by month. */
  readonly table: 'delivery_attempts' | 'notifications' | 'quotes';
  readonly idColumn: 'notification_id' | 'quote_id';
  readonly prefix: 'ntf_' | 'qte_';
}

export const MONTHLY_KINDS: Readonly<Record<Exclude<RetentionKind, 'payloads'>, MonthlyKind>> = {
  attempts: { kind: 'attempts', table: 'delivery_attempts', idColumn: 'notification_id', prefix: 'ntf_' },
  notifications: {
    kind: 'notifications',
    table: 'notifications',
    idColumn: 'notification_id',
    prefix: 'ntf_',
  },
  quotes: { kind: 'quotes', table: 'quotes', idColumn: 'quote_id', prefix: 'qte_' },
};

/** The smallest id of what is to be kept: the database knows of how many days. */
export const floorOf = (kind: RetentionKind) => sql`retention_floor(${kind})`;

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

/** A step of the walk along the ids, and whether there may be more. */
interface PayloadStep {
  readonly cleared: number;
  /** The same by the UTC day of their creation. */
  readonly byDay: RemovedByPeriod;
  /** The last id looked at; the next step goes on after it. */
  readonly cursor: string;
  readonly more: boolean;
}

/** Where the walk begins: everything up to there has been dealt with. Empty at first. */
export async function payloadMark(db: DbOrTransaction): Promise<string> {
  const [row] = await db.execute<{ mark: string }>(
    sql`select done_up_to as mark from retention_marks where kind = 'payloads'`,
  );
  return row?.mark ?? '';
}

/** Empties the bodies, and what was answered to them, of the next notifications that are past their time and have ended (clear_payloads). */
export async function clearPayloads(
  db: DbOrTransaction,
  { limit, cursor }: { readonly limit: number; readonly cursor: string },
): Promise<PayloadStep> {
  const [row] = await db.execute<{
    cleared: number;
    byDay: RemovedByPeriod;
    cursor: string;
    more: boolean;
  }>(sql`
    select cleared, by_day as "byDay", last as cursor, more from clear_payloads(${cursor}, ${limit}::int)`);
  if (row === undefined) throw new Error('clear_payloads returned nothing');
  return row;
}

/** Some tens of milliseconds of work, and a rest, so that live traffic hardly notices. */
const BATCH = 1_000;
const REST_MS = 50;

export interface RetentionStep {
  /** Rows that went, or lost their payload. */
  readonly removed: number;
  /** The same by when they were created. */
  readonly byPeriod: RemovedByPeriod;
  /** Months that went as a whole, by their partitions. */
  readonly dropped: readonly string[];
  /** There is more to do, from this cursor on. */
  readonly more: boolean;
  readonly cursor: string | null;
  /** Months that were in use, so that they were not dropped: to be tried again a little later. */
  readonly busy: readonly string[];
}

interface RetentionStepOptions {
  readonly enough: () => boolean;
  readonly batch?: number;
}

/**
 * Removes what is past its time of one kind, in batches, until that is done or `enough` says so. Interrupted at any
 * moment, it is taken up by the next step. Statements may take long: give it a connection without a short timeout.
 */
export async function applyRetentionStep(
  db: Db,
  task: RetentionTask,
  options: RetentionStepOptions,
): Promise<RetentionStep> {
  const { kind } = task;
  return kind === 'payloads' ? clearSome(db, task, options) : removeSome(db, MONTHLY_KINDS[kind], options);
}

async function clearSome(
  db: Db,
  { cursor: from }: RetentionTask,
  { enough, batch = BATCH }: RetentionStepOptions,
): Promise<RetentionStep> {
  let cursor = from ?? (await payloadMark(db));
  let [removed, more] = [0, true];
  let byPeriod: RemovedByPeriod = {};
  while (more) {
    const done = await clearPayloads(db, { limit: batch, cursor });
    removed += done.cleared;
    byPeriod = addRemoved(byPeriod, done.byDay);
    ({ cursor, more } = done);
    if (enough()) break;
    if (more) await sleep(REST_MS);
  }
  return { removed, byPeriod, dropped: [], more, cursor, busy: [] };
}

async function removeSome(
  db: Db,
  kind: MonthlyKind,
  { enough, batch = BATCH }: RetentionStepOptions,
): Promise<RetentionStep> {
  const dropped: string[] = [];
  const busy: string[] = [];
  const inBatches = [`${kind.table}_default`];
  let removed = 0;
  let byPeriod: RemovedByPeriod = {};
  const gone = (partition: string, rows: number) => {
    removed += rows;
    if (rows > 0) byPeriod = addRemoved(byPeriod, { [periodOf(kind, partition)]: rows });
  };
  const step = (more: boolean): RetentionStep => ({ removed, byPeriod, dropped, more, cursor: null, busy });
  for (const month of await expiredMonths(db, kind)) {
    const outcome = await dropMonth(db, kind, month);
    if (outcome === 'busy') busy.push(month.partition);
    else if (outcome === 'stays') inBatches.push(month.partition);
    else {
      dropped.push(month.partition);
      gone(month.partition, outcome.rows);
    }
    if (enough()) return step(true);
  }
  for (const partition of inBatches) {
    for (let more = true; more;) {
      const deleted = await deleteBatch(db, kind, partition, batch);
      gone(partition, deleted.rows);
      more = deleted.ids === batch;
      if (enough()) return step(true);
      if (more) await sleep(REST_MS);
    }
  }
  return step(false);
}

/** `quotes_2026_11` is `2026-11`, `quotes_default` is `default`. */
const periodOf = ({ table }: MonthlyKind, partition: string) =>
  partition.slice(table.length + 1).replace('_', '-');
