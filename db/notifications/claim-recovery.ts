import { and, eq, sql } from 'drizzle-orm';
import { ulid } from 'ulid';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { recoveries } from '../schema';
import type { Recovery } from './recoveries';

/** A worker writes to its recovery ten times a second; one that has not for so long is gone. */
const LEASE_SECONDS = 30;

/**
 * Takes up a partner's recovery that no worker carries out, the oldest first; null when there is none. What belongs to a partner
 * whose recoveries have been switched off meanwhile is stopped instead.
 */
export async function claimRecovery(db: Db): Promise<Recovery | null> {
  return db.transaction(async (tx) => {
    await tx.execute(sql`
      update recoveries r set state = 'interrupted', updated_at = service_now()
      where r.state = 'running' and r.key_id is not null
        and exists (select 1 from partners p where p.partner_id = r.partner_id and p.recovery = 'disabled')`);
    const [row] = await tx
      .update(recoveries)
      .set({ runner: ulid(), updatedAt: sql`service_now()` })
      .where(
        sql`${recoveries.recoveryId} = (
          select recovery_id from recoveries
          where state = 'running' and key_id is not null
            and (runner = '' or updated_at < service_now() - make_interval(secs => ${LEASE_SECONDS}))
          order by recovery_id limit 1 for update skip locked)`,
      )
      .returning();
    return row ?? null;
  });
}

/** Gives a recovery back, for the next worker to take it up at once. */
export async function giveBackRecovery(
  db: DbOrTransaction,
  { recoveryId, runner }: Pick<Recovery, 'recoveryId' | 'runner'>,
): Promise<void> {
  await db
    .update(recoveries)
    .set({ runner: '' })
    .where(and(eq(recoveries.recoveryId, recoveryId), eq(recoveries.runner, runner)));
}
