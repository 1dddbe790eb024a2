import { setTimeout as sleep } from 'node:timers/promises';
import { addRemoved, type RemovedByPeriod, type RetentionTask } from '../../domain/retention';
import { oneRow, runPrepared, type Db, type Reader } from '../postgres/connect';

const OF_NOTIFICATIONS = { idColumn: 'notification_id', prefix: 'ntf_' } as const;
/** Kinds whose rows are removed, by whole months where possible. ids_that_stay() decides which stay. */
export const MONTHLY_KINDS = {
  attempts: { kind: 'attempts', table: 'delivery_attempts', ...OF_NOTIFICATIONS },
  notifications: { kind: 'notifications', table: 'notifications', ...OF_NOTIFICATIONS },
  quotes: { kind: 'quotes', table: 'quotes', idColumn: 'quote_id', prefix: 'qte_' },
} as const;
export type MonthlyKind = (typeof MONTHLY_KINDS)[keyof typeof MONTHLY_KINDS];

export interface ExpiredMonth {
  /** `quotes_2026_11` */
  readonly partition: string;
  readonly month: string;
  /** Ids from `low`, inclusive, to `high`. */
  readonly low: string;
  readonly high: string;
}

const EXPIRED = `
  select partition, month, $2 || ulid_floor(begins) as low, $2 || ulid_floor(begins + interval '1 month') as high
  from (
    select c.relname::text as partition, right(c.relname, 7) as month,
      to_date(right(c.relname, 7), 'YYYY_MM')::timestamp at time zone 'UTC' as begins
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = $1::text::regclass and c.relname ~ ('^' || $1 || '_[0-9]{4}_[0-9]{2}$')) m
  where $2::text || ulid_floor(begins + interval '1 month') <= retention_floor($3) collate "C"
  order by month`;

/** Months whose last day has expired by the database's clock, oldest first. Workers may not read the rows. */
export const expiredMonths = (reader: Reader, { kind, table, prefix }: MonthlyKind) =>
  runPrepared<ExpiredMonth>(reader, EXPIRED, [table, prefix, kind]);

/** SQLSTATE of a lock that was not available in time, and of a deadlock. */
const LOCKED_OUT = new Set(['55P03', '40P01']);

/**
 * Drops a month as a whole, and logs that (drop_expired_month).
 * @returns `stays` when a row of it must; `busy` when it was locked for half a second, or has changed
 * since it was counted
 * @throws when it is no month, or has not expired
 */
export async function dropMonth(
  reader: Reader,
  { table }: MonthlyKind,
  { month }: ExpiredMonth,
): Promise<{ readonly rows: number } | 'stays' | 'busy'> {
  const text = 'select outcome, rows::float8 as rows from drop_expired_month($1, $2)';
  type Dropped = { readonly outcome: 'gone' | 'stays' | 'busy'; readonly rows: number };
  try {
    const { outcome, rows } = await oneRow<Dropped>(reader, text, [table, month]);
    return outcome === 'gone' ? { rows } : outcome;
  } catch (error) {
    if (LOCKED_OUT.has(String((error as { code?: unknown }).code))) return 'busy';
    throw error;
  }
}

/**
 * Deletes expired rows of a partition, oldest first (delete_expired).
 * @returns how many; fewer ids than `limit` mean that there are no more
 */
export function deleteBatch(reader: Reader, { table }: MonthlyKind, partition: string, limit: number) {
  const text = 'select ids, rows from delete_expired($1, $2, $3::int)';
  return oneRow<{ readonly ids: number; readonly rows: number }>(reader, text, [table, partition, limit]);
}

export async function payloadMark(reader: Reader): Promise<string> {
  const text = `select done_up_to as mark from retention_marks where kind = 'payloads'`;
  const [row] = await runPrepared<{ mark: string }>(reader, text);
  return row?.mark ?? '';
}

interface PayloadStep {
  readonly cleared: number;
  readonly byDay: RemovedByPeriod;
  readonly cursor: string;
  readonly more: boolean;
}

/** Removes bodies and answers of the next notifications that have expired and ended (clear_payloads). */
export const clearPayloads = (reader: Reader, { limit, cursor }: { limit: number; cursor: string }) =>
  oneRow<PayloadStep>(
    reader,
    'select cleared, by_day as "byDay", last as cursor, more from clear_payloads($1, $2::int)',
    [cursor, limit],
  );

/** A batch is some tens of milliseconds of work, and the pause leaves room for live traffic. */
const BATCH = 1_000;
const REST_MS = 50;

export interface RetentionStep {
  readonly removed: number;
  readonly byPeriod: RemovedByPeriod;
  readonly dropped: readonly string[];
  readonly more: boolean;
  readonly cursor: string | null;
  /** Partitions that were in use; a later step tries again. */
  readonly busy: readonly string[];
}

interface RetentionStepOptions {
  readonly enough: () => boolean;
  readonly batch?: number;
}

/** Removes what has expired of one kind, until done or `enough`. It needs a long statement timeout. */
export async function applyRetentionStep(db: Db, task: RetentionTask, options: RetentionStepOptions) {
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

async function removeSome(db: Db, kind: MonthlyKind, { enough, batch = BATCH }: RetentionStepOptions) {
  const dropped: string[] = [];
  const busy: string[] = [];
  const inBatches = [`${kind.table}_default`];
  let removed = 0;
  let byPeriod: RemovedByPeriod = {};
  /** `quotes_2026_11` counts for `2026-11`, and `quotes_default` for `default`. */
  const count = (partition: string, rows: number) => {
    removed += rows;
    const period = partition.slice(kind.table.length + 1).replace('_', '-');
    if (rows > 0) byPeriod = addRemoved(byPeriod, { [period]: rows });
  };
  const step = (more: boolean): RetentionStep => ({ removed, byPeriod, dropped, more, cursor: null, busy });
  for (const month of await expiredMonths(db, kind)) {
    const outcome = await dropMonth(db, kind, month);
    if (outcome === 'busy') busy.push(month.partition);
    else if (outcome === 'stays') inBatches.push(month.partition);
    else {
      dropped.push(month.partition);
      count(month.partition, outcome.rows);
    }
    if (enough()) return step(true);
  }
  for (const partition of inBatches) {
    for (let more = true; more;) {
      const deleted = await deleteBatch(db, kind, partition, batch);
      count(partition, deleted.rows);
      more = deleted.ids === batch;
      if (enough()) return step(true);
      if (more) await sleep(REST_MS);
    }
  }
  return step(false);
}
