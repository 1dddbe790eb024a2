import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { RETENTION_KINDS, type RetentionKind } from '../../domain/retention';
import { readRetentionDays } from './days';
import {
  expiredMonths,
  floorOf,
  MONTHLY_KINDS,
  payloadMark,
  type ExpiredMonth,
  type MonthlyKind,
} from './remove';

/** What a run of the retention would remove now. */
export interface RetentionCount {
  readonly kind: RetentionKind;
  readonly days: number;
  /** Rows that would go, or lose their payload. */
  readonly rows: number;
  /** Months among them that would go as a whole. */
  readonly months: readonly string[];
  /** Rows past their time that stay, because something is under way. */
  readonly staying: number;
}

/** Counts what is past its time. Changes nothing. */
export async function countExpired(db: DbOrTransaction): Promise<RetentionCount[]> {
  const days = await readRetentionDays(db);
  const counts: RetentionCount[] = [];
  for (const kind of RETENTION_KINDS) {
    counts.push(
      kind === 'payloads' ? await payloads(db, days.payloads) : await monthly(db, kind, days[kind]),
    );
  }
  return counts;
}

async function payloads(db: DbOrTransaction, days: number): Promise<RetentionCount> {
  const mark = await payloadMark(db);
  const [row] = await db.execute<{ rows: number; staying: number }>(sql`
    select (count(*) filter (where body <> '' and end_state is not null))::float8 as rows,
      (count(*) filter (where end_state is null))::float8 as staying
    from notifications
    where notification_id > ${mark} and notification_id < (select ${floorOf('payloads')})`);
  return { kind: 'payloads', days, rows: row?.rows ?? 0, months: [], staying: row?.staying ?? 0 };
}

async function monthly(
  db: DbOrTransaction,
  name: Exclude<RetentionKind, 'payloads'>,
  days: number,
): Promise<RetentionCount> {
  const kind = MONTHLY_KINDS[name];
  let [rows, staying] = [0, 0];
  const months: string[] = [];
  const add = (counted: { rows: number; staying: number } | undefined) => {
    rows += counted?.rows ?? 0;
    staying += counted?.staying ?? 0;
  };
  for (const month of await begunMonths(db, kind)) {
    if (!(await hasToStay(db, kind, month))) months.push(month.partition);
    add(await within(db, kind, month));
  }
  add(await within(db, kind, null));
  return { kind: name, days, rows, months, staying };
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

/** Of a month, read through its parent as nobody has rights on the months themselves; null: of the default partition. */
async function within(
  db: DbOrTransaction,
  { kind, table, idColumn }: MonthlyKind,
  month: ExpiredMonth | null,
): Promise<{ rows: number; staying: number } | undefined> {
  const id = sql.identifier(idColumn);
  const [from, range] =
    month === null
      ? [`${table}_default`, sql`true`]
      : [table, sql`t.${id} >= ${month.low} and t.${id} < ${month.high}`];
  const [row] = await db.execute<{ rows: number; staying: number }>(sql`
    with kept as (select ${floorOf(kind)} as floor)
    select (count(*) filter (where not stays))::float8 as rows, (count(*) filter (where stays))::float8 as staying
    from (
      select t.${id} in (select s from kept, ids_that_stay(${table}, '', kept.floor) s) as stays
      from ${sql.identifier(from)} t where ${range} and t.${id} < (select floor from kept)) r`);
  return row;
}
