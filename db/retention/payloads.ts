import { sql } from 'drizzle-orm';
import { createdMs } from '../notifications/id-time';
import type { Db, DbOrTransaction } from '../postgres/connect';
import type { RemovedByPeriod } from '../../domain/retention';
import { floorOf } from './kinds';

const ENDED = sql`('delivered', 'failed', 'cancelled', 'expired')`;

/** A step of the walk along the ids, and whether there may be more. */
interface PayloadStep {
  readonly cleared: number;
  /** The same by the UTC day of their creation, which their ids contain. */
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

/**
 * Empties the bodies, and what was answered to them, of the next notifications that are past their time and have ended.
 * The mark moves along until it meets one that has not ended: that one is looked at again by the next run.
 */
export async function clearPayloads(
  db: Db,
  { days, limit, cursor }: { days: number; limit: number; cursor: string },
): Promise<PayloadStep> {
  return db.transaction(async (tx) => {
    const rows = await tx.execute<{ id: string; open: boolean }>(sql`
      select notification_id as id, state not in ${ENDED} as open from notifications
      where notification_id > ${cursor} and notification_id < (select ${floorOf('ntf_', days)})
      order by notification_id limit ${limit}`);
    const last = rows.at(-1)?.id;
    if (last === undefined) return { cleared: 0, byDay: {}, cursor, more: false };
    const range = sql`notification_id > ${cursor} and notification_id <= ${last}`;
    const cleared = await tx.execute<{ id: string }>(sql`
      update notifications set body = '' where ${range} and state in ${ENDED} and body <> ''
      returning notification_id as id`);
    await tx.execute(sql`
      update delivery_attempts set answer = null where ${range} and answer is not null
        and notification_id in (select notification_id from notifications where ${range} and state in ${ENDED})`);
    const firstOpen = rows.findIndex(({ open }) => open);
    const done = firstOpen === -1 ? last : (rows[firstOpen - 1]?.id ?? cursor);
    // Only where the mark stands at the beginning of this step: an earlier step may have left one behind, and a cursor may be false.
    await tx.execute(sql`
      insert into retention_marks as m (kind, done_up_to)
      select 'payloads', ${done}
      where ${cursor} = coalesce((select done_up_to from retention_marks where kind = 'payloads'), '')
      on conflict (kind) do update set done_up_to = excluded.done_up_to, updated_at = service_now()
      where m.done_up_to = ${cursor}`);
    const byDay: Record<string, number> = {};
    for (const { id } of cleared) byDay[dayOf(id)] = (byDay[dayOf(id)] ?? 0) + 1;
    return { cleared: cleared.length, byDay, cursor: last, more: rows.length === limit };
  });
}

const dayOf = (notificationId: string) => new Date(createdMs(notificationId)).toISOString().slice(0, 10);
