import { findings } from '../../../test/storm/findings';
import { miscounted } from '../../../test/support/invariants';
import type { StormRun } from './run';
import type { ClusterScene } from './scene';

/** What the storm showed. The verdict is the last line of `npm run storm:cluster -- --json`. */
export async function judge(scene: ClusterScene, run: StormRun) {
  const { database, receiver, answered, witness } = scene;
  const { load, promised, tested, kills } = run;
  const lost = await missing(scene, 'quotes', 'quote_id', load.quotes);
  const words = await missing(scene, 'storm_words', 'word', witness.acknowledged);
  const rows = await database.sql<{ id: string; state: string }[]>`
    select event_id as id, case when application_id is null and state = 'failed' then 'delivered' else state end as state
    from notifications_now`;
  const taken = new Map<string, number>();
  for (const [nth, { headers }] of receiver.received.entries())
    if (answered[nth] === 200) {
      const id = String(headers['webhook-id']);
      taken.set(id, (taken.get(id) ?? 0) + 1);
    }
  const stored = new Set(rows.map(({ id }) => id));
  // Of applications each event that was acknowledged is one notification, beside the first.
  const told = promised.reduce((sum, { statuses }) => sum + statuses.length + 1, 0) + tested.accepted;
  const undelivered = rows.filter(({ state }) => state !== 'delivered').length;
  const unknown = [...taken.keys()].filter((id) => !stored.has(id)).length;
  const all = [
    {
      invariant: '    every quote that was answered is stored',
      looked: load.quotes.length,
      seen: `${load.quotes.length} answered, ${load.refused()} refused or not answered`,
      offenders: lost,
    },
    {
      invariant: '    what a Postgres acknowledged that had lost the lead is stored',
      looked: witness.tried(),
      // Only some blows leave a Postgres that may believe it leads.
      optional: true,
      seen: `${witness.acknowledged.length} of ${witness.tried()} tries were acknowledged`,
      offenders: words,
    },
    ...(await findings(scene, promised, tested, kills)),
  ];
  return {
    findings: all,
    verdict: {
      quotes_answered: load.quotes.length,
      quotes_lost: lost.length,
      notifications: rows.length,
      notifications_lost: undelivered + unknown + Math.max(0, told - rows.length),
      miscounted: (await miscounted(database)).length,
      /** Events that a receiver took more than once. */
      repeats: [...taken.values()].reduce((sum, times) => sum + times - 1, 0),
      /** But for the time without a majority of etcd. */
      longest_without_quotes_s: run.longestWithoutQuotesS,
      longest_delivery_pause_s: run.longestDeliveryPauseS,
      kills: run.struck,
    },
  };
}

async function missing(
  { database }: ClusterScene,
  table: string,
  column: string,
  ids: readonly string[],
): Promise<string[]> {
  const rows = await database.sql.unsafe<{ id: string }[]>(`select ${column} as id from ${table}`);
  const there = new Set(rows.map(({ id }) => id));
  return ids.filter((id) => !there.has(id));
}
