import { RETENTION_KINDS, type RetentionKind } from '../../domain/retention';
import { oneRow, type DbOrTransaction, type Reader } from '../postgres/connect';
import { readRetentionDays } from './days';
import { expiredMonths, MONTHLY_KINDS, payloadMark, type ExpiredMonth, type MonthlyKind } from './remove';

export interface RetentionCount {
  readonly kind: RetentionKind;
  readonly days: number;
  readonly rows: number;
  readonly months: readonly string[];
  /** Expired rows that stay, because something is under way. */
  readonly staying: number;
}

type Rows = Pick<RetentionCount, 'rows' | 'staying'>;

const PAYLOADS = `
  select (count(*) filter (where body <> '' and end_state is not null))::float8 as rows,
    (count(*) filter (where end_state is null))::float8 as staying
  from notifications where notification_id > $1 and notification_id < (select retention_floor('payloads'))`;

const countPayloads = async (reader: Reader) => ({
  ...(await oneRow<Rows>(reader, PAYLOADS, [await payloadMark(reader)])),
  months: [],
});

export async function countExpired(db: DbOrTransaction): Promise<RetentionCount[]> {
  const days = await readRetentionDays(db);
  const counts: RetentionCount[] = [];
  for (const kind of RETENTION_KINDS) {
    const counted =
      kind === 'payloads' ? await countPayloads(db) : await countMonths(db, MONTHLY_KINDS[kind]);
    counts.push({ kind, days: days[kind], ...counted });
  }
  return counts;
}

async function countMonths(reader: Reader, kind: MonthlyKind): Promise<Rows & { months: string[] }> {
  let { rows, staying } = await countIn(reader, kind, null);
  const months: string[] = [];
  for (const month of await begunMonths(reader, kind)) {
    const text = 'select exists (select from ids_that_stay($1, $2, $3)) as stays';
    const range = [kind.table, month.low, month.high];
    if (!(await oneRow<{ stays: boolean }>(reader, text, range)).stays) months.push(month.partition);
    const counted = await countIn(reader, kind, month);
    rows += counted.rows;
    staying += counted.staying;
  }
  return { rows, staying, months };
}

/** Expired months that have begun. Only a wrong clock makes an unbegun month expire. */
export async function begunMonths(reader: Reader, kind: MonthlyKind): Promise<ExpiredMonth[]> {
  const text = `select coalesce(max(${kind.idColumn}), '') as newest from ${kind.table}`;
  const { newest } = await oneRow<{ newest: string }>(reader, text);
  return (await expiredMonths(reader, kind)).filter(({ low }) => newest >= low);
}

// Counts in a month through its parent, as months have no rights; null: in the default partition.
function countIn(reader: Reader, { kind, table, idColumn: id }: MonthlyKind, month: ExpiredMonth | null) {
  const from = month === null ? `${table}_default` : table;
  const range = month === null ? '' : `t.${id} >= $3 and t.${id} < $4 and`;
  const text = `
    with kept as (select retention_floor($1) as floor)
    select (count(*) filter (where not stays))::float8 as rows, (count(*) filter (where stays))::float8 as staying
    from (
      select t.${id} in (select s from kept, ids_that_stay($2, '', kept.floor) s) as stays
      from ${from} t where ${range} t.${id} < (select floor from kept)) r`;
  return oneRow<Rows>(reader, text, [kind, table, ...(month === null ? [] : [month.low, month.high])]);
}
