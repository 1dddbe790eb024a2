import type { Sql } from '../../db/postgres/connect';
import { SESSIONS } from './messages';

const EVERY_MS = 10;

/** What the sessions at work were doing: `CPU`, or what they waited for, as a share of all that was seen. */
export type Waits = readonly (readonly [what: string, share: number])[];

/** Looks at the bench's sessions every 10 ms, until it is stopped. */
export function sampleWaits(sql: Sql): { stop(): Promise<Waits> } {
  const seen = new Map<string, number>();
  let stopped = false;
  const sampling = (async () => {
    while (!stopped) {
      const rows = await sql<{ what: string; count: number }[]>`
        select coalesce(wait_event_type || ': ' || wait_event, 'CPU') as what, count(*)::int
        from pg_stat_activity where application_name = ${SESSIONS} and state = 'active' group by 1`;
      for (const { what, count } of rows) seen.set(what, (seen.get(what) ?? 0) + count);
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  })();
  return {
    async stop() {
      stopped = true;
      await sampling;
      const all = [...seen.values()].reduce((sum, count) => sum + count, 0);
      return [...seen].map(([what, count]) => [what, count / all] as const).toSorted((a, b) => b[1] - a[1]);
    },
  };
}
