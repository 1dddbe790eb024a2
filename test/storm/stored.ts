import type { Database } from '../../db/postgres/connect';
import { byApplication, type Finding, type Row } from './finding';
import type { Promised } from './lenders';
import type { StormSight } from './scene';

export function ended(rows: readonly Row[]): Finding {
  const open = rows.filter(({ applicationId, state, unfinished }) => {
    // The short ladder of a test notification may end before an outage does.
    const well = state === 'delivered' || (applicationId === null && state === 'failed');
    return !well || unfinished > 0;
  });
  return {
    invariant: 'I1  every notification is delivered or, for a test, has ended; none is lost',
    looked: rows.length,
    seen: `${rows.length} notifications`,
    offenders: open.map(({ id, state, unfinished }) => `${id} ${state}, ${unfinished} unfinished`),
  };
}

/** What was acknowledged is there. */
export async function kept({ database }: StormSight, promised: readonly Promised[]): Promise<Finding> {
  const { sql } = database;
  const opened = await sql<Rows>`select application_id as id from credit_applications`;
  const quotes = promised.map(({ quoteId }) => quoteId);
  const applications = promised.map(({ applicationId }) => applicationId);
  const events = promised.flatMap(({ applicationId, statuses }) =>
    statuses.map((status) => `${applicationId} ${status}`),
  );
  const lost = [
    ...(await missing(quotes, sql<Rows>`select quote_id as id from quotes`)),
    ...(await missing(applications, opened)),
    ...(await missing(events, sql<Rows>`select application_id || ' ' || status as id from lender_events`)),
  ];
  const extra = opened.filter(({ id }) => !applications.includes(id));
  return {
    invariant: 'I1  what was acknowledged is stored, once',
    looked: promised.length,
    seen: `${promised.length} quotes and applications, ${events.length} lender events`,
    offenders: [...lost.map((one) => `missing ${one}`), ...extra.map(({ id }) => `opened twice ${id}`)],
  };
}

export type Rows = readonly { readonly id: string }[];

/** @returns those of the ids that no row has. */
export async function missing(ids: readonly string[], rows: PromiseLike<Rows> | Rows): Promise<string[]> {
  const there = new Set((await rows).map(({ id }) => id));
  return ids.filter((id) => !there.has(id));
}

async function count({ sql }: Database, what: string): Promise<number> {
  const [row] = await sql.unsafe<{ count: number }[]>(`select count(*)::int as count from ${what}`);
  return row?.count ?? 0;
}
/** Rows of attempts that have no end: the most that a kill may leave unknown. */
export const attemptsUnderWay = ({ database }: Pick<StormSight, 'database'>) =>
  count(database, 'delivery_attempts where finished_at is null');
/** Notifications that have no end. */
export const openNotifications = ({ database }: Pick<StormSight, 'database'>) =>
  count(database, 'deliveries');

export async function counted({ database }: Pick<StormSight, 'database'>): Promise<Finding> {
  const wrong = await miscounted(database);
  const [sum] = await database.sql<{ counted: number }[]>`
    select coalesce(sum(delivered + failed), 0)::int as counted from monthly_counts`;
  return {
    invariant: 'I3  each is counted once',
    looked: sum?.counted ?? 0,
    seen: `${sum?.counted} counted`,
    offenders: wrong.map((one) => JSON.stringify(one)),
  };
}

/** Where the counts differ from the notifications that they count; empty when I3 holds. */
async function miscounted({ sql }: Database): Promise<unknown[]> {
  const found = await sql`
    select * from (
      select partner_id, environment, event_type, sum(delivered)::int as delivered, sum(failed)::int as failed
      from monthly_counts group by 1, 2, 3) c
    full join (
      select partner_id, environment, event_type, count(delivered_at)::int as delivered,
        count(failed_month)::int as failed
      from notifications_now group by 1, 2, 3) n using (partner_id, environment, event_type)
    where coalesce(c.delivered, 0) <> coalesce(n.delivered, 0) or coalesce(c.failed, 0) <> coalesce(n.failed, 0)`;
  return [...found];
}

export function sequences(rows: readonly Row[], promised: readonly Promised[]): Finding {
  const grouped = byApplication(rows);
  const broken = promised.filter(({ applicationId, statuses }) => {
    const own = (grouped.get(applicationId) ?? []).map(({ sequence }) => sequence);
    const wanted = Array.from({ length: statuses.length + 1 }, (_, at) => at + 1);
    return own.toSorted((a, b) => a - b).join() !== wanted.join();
  });
  return {
    invariant: '    the sequence of every application is complete',
    looked: promised.length,
    seen: `${grouped.size} applications`,
    offenders: broken.map(({ applicationId }) => applicationId),
  };
}

/** I10: what an application tells of money is what was quoted. */
export async function money({ database }: StormSight): Promise<Finding> {
  const all = await database.sql<{ id: string; fits: boolean }[]>`
    select a.application_id as id,
      a.loan_pence + a.deposit_pence = q.loan_pence + coalesce(q.deposit_pence, 0) as fits
    from credit_applications a join quotes q using (quote_id)`;
  return {
    invariant: 'I10 loan and deposit of every application add up to the price quoted',
    looked: all.length,
    seen: `${all.length} applications`,
    offenders: all.filter(({ fits }) => !fits).map(({ id }) => id),
  };
}
