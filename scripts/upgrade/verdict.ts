import { miscounted } from '../../test/support/invariants';
import type { Promised } from '../../test/storm/lenders';
import type { UpgradeScene } from './scene';

export interface Verdict {
  readonly notifications: number;
  /** Not delivered in the end, or promised to a lender and not there. */
  readonly lost: number;
  /** Answered 200 more than once. */
  readonly repeats: number;
  /** Attempts whose outcome is unknown. */
  readonly unknown: number;
  /** Notifications of which more or less arrived than attempts say. */
  readonly astray: number;
  /** Months whose counts differ from what was delivered. */
  readonly miscounted: number;
  /** One sentence for each fault that a figure above counts. */
  readonly faults: readonly string[];
}

/** Holds what the receivers saw against the database, once all should have ended. */
export async function judge(scene: UpgradeScene, promised: readonly Promised[]): Promise<Verdict> {
  const { database, receivers } = scene;
  const rows = await database.sql<
    { id: string; eventId: string; state: string; attempts: number; unknown: number; unanswered: number }[]
  >`
    select n.notification_id as id, event_id as "eventId", n.state, count(attempt_number)::int as attempts,
      (count(*) filter (where outcome = 'unknown'))::int as unknown,
      (count(*) filter (where outcome = 'failed' and http_status is null))::int as unanswered
    from notifications n left join delivery_attempts a on a.notification_id = n.notification_id
    group by n.notification_id`;
  const [told] = await database.sql<{ count: number }[]>`
    select count(*)::int as count from notifications where application_id = any(${promised.map((one) => one.applicationId)})`;
  // An opened application is an event of its own.
  const events = promised.reduce((sum, { statuses }) => sum + statuses.length + 1, 0);
  const arrived = new Map<string, number>();
  for (const { headers } of [...receivers.well.received, ...receivers.down.received]) {
    const id = String(headers['webhook-id']);
    arrived.set(id, (arrived.get(id) ?? 0) + 1);
  }
  const failed = await database.sql<{ id: string; count: number }[]>`
    select n.event_id as id, count(*)::int as count from delivery_attempts a join notifications n using (notification_id)
    where http_status = 503 group by 1`;
  const refused = new Map(failed.map(({ id, count }) => [id, count]));
  const open = rows.filter(({ state }) => state !== 'delivered');
  const repeated = rows.filter(
    ({ eventId }) => (arrived.get(eventId) ?? 0) - (refused.get(eventId) ?? 0) > 1,
  );
  const astray = rows.filter(({ eventId, attempts, unknown, unanswered }) => {
    const seen = arrived.get(eventId) ?? 0;
    return seen > attempts || attempts - seen > unknown + unanswered;
  });
  const wrong = await miscounted(database);
  return {
    notifications: rows.length,
    lost: open.length + Math.max(events - (told?.count ?? 0), 0),
    repeats: repeated.length,
    unknown: rows.reduce((sum, { unknown }) => sum + unknown, 0),
    astray: astray.length,
    miscounted: wrong.length,
    faults: [
      ...open.map(({ id, state }) => `${id} is ${state}`),
      ...repeated.map(({ id }) => `${id} was taken more than once`),
      ...astray.map(
        ({ id, attempts, eventId }) => `${id}: ${attempts} attempts, ${arrived.get(eventId) ?? 0} arrived`,
      ),
      ...wrong.map((one) => `miscounted: ${JSON.stringify(one)}`),
    ],
  };
}
