import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../db/postgres/connect';
import { Refused } from '../db/refused';
import { LONGEST_RECOVERY_DAYS } from '../contracts/notification-recovery';
import type { MomentOrAgo } from './arguments';

/**
 * The span that was asked for, by the database's clock, in ISO 8601. Its end is never in the future, so that it stands
 * still while the recovery runs.
 * @throws Refused when it is empty, or begins too long ago.
 */
export async function resolveSpan(
  db: DbOrTransaction,
  since: MomentOrAgo,
  until: MomentOrAgo,
): Promise<{ since: string; until: string }> {
  const [row] = await db.execute<{ now: string }>(
    sql`select to_char(service_now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as now`,
  );
  const now = Date.parse(row?.now ?? '');
  const at = (wanted: MomentOrAgo) =>
    'at' in wanted ? wanted.at.getTime() : now - wanted.agoSeconds * 1_000;
  const [from, to] = [at(since), Math.min(at(until), now)];
  if (from >= to) throw new Refused('invalid', 'The span is empty: --since must lie before --until and now.');
  if (now - from > LONGEST_RECOVERY_DAYS * 86_400_000)
    throw new Refused('invalid', `--since must lie at most ${LONGEST_RECOVERY_DAYS} days back.`);
  return { since: new Date(from).toISOString(), until: new Date(to).toISOString() };
}
