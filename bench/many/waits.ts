import type postgres from 'postgres';
import type { Sql } from '../../db/postgres/connect';
import { pause } from '../harness/bench';

const EVERY_MS = 100;
const SHOWN = 5;

/**
 * Samples what the sessions of a Postgres wait for.
 * @returns ends that: the most frequent waits, each with the mean number of sessions in it; `CPU` runs or waits for a core
 */
export function watchWaits(sql: postgres.Sql | Sql): () => Promise<string> {
  const seen = new Map<string, number>();
  let [samples, over] = [0, false];
  const watching = (async () => {
    while (!over) {
      const rows = await sql.unsafe<{ wait: string; sessions: number }[]>(
        `select /* bench */ coalesce(wait_event_type || ':' || wait_event, 'CPU') as wait, count(*)::int as sessions
        from pg_stat_activity where state <> 'idle' and backend_type = 'client backend' and pid <> pg_backend_pid() group by 1`,
      );
      for (const { wait, sessions } of rows) seen.set(wait, (seen.get(wait) ?? 0) + sessions);
      samples += 1;
      await pause(EVERY_MS);
    }
  })();
  return async () => {
    over = true;
    await watching;
    const found = [...seen].toSorted(([, a], [, b]) => b - a).slice(0, SHOWN);
    return found.map(([wait, sessions]) => `${wait} ${(sessions / samples).toFixed(2)}`).join(', ');
  };
}
