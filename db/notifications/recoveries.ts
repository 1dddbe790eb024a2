import { desc, eq, sql } from 'drizzle-orm';
import { ulid } from 'ulid';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { recoveries } from '../schema';
import { given } from '../schema/columns';
import { appendChange } from '../audit/change-log';
import { Refused } from '../refused';
import { EndpointMissing, resendChange, resendNotification } from './resend';
import type { RecoveryItem, RecoverySpan } from './undelivered';

export type Recovery = typeof recoveries.$inferSelect;

/** Bulk recoveries are claimed after everything that is live (db/notifications/claim.ts). */
const BULK_PRIORITY = 1;

/** Who does it, and in whose name: a process that was taken over from is told so. */
interface RecoveryRunner {
  readonly recoveryId: string;
  readonly runner: string;
  readonly actor: string;
}

/** Another process has resumed this recovery: this one has no say any more. */
export class TakenOver extends Error {
  override readonly name = 'TakenOver';
}

/** Writes a new recovery down; it has sent nothing yet. */
export async function beginRecovery(
  db: Db,
  wanted: RecoverySpan & { readonly perSecond: number; readonly found: number; readonly actor: string },
): Promise<Recovery> {
  const { actor, partnerId, environment, since, until, perSecond, found } = wanted;
  const recoveryId = `rcv_${ulid()}`;
  return db.transaction(async (tx) => {
    const span = { since: new Date(since), until: new Date(until) };
    const [row] = await tx
      .insert(recoveries)
      .values({ recoveryId, partnerId, environment, perSecond, found, runner: ulid(), ...span })
      .returning();
    const details = { partner_id: partnerId, environment, since, until, found };
    await appendChange(tx, { actor, action: 'recoveries.begin', subject: recoveryId, details });
    return row as Recovery;
  });
}

/**
 * Takes up one that was interrupted, or whose process died, from where it stands.
 * @throws Refused when there is none, or it is done.
 */
export async function resumeRecovery(
  db: Db,
  recoveryId: string,
  { actor, perSecond }: { actor: string; perSecond: number | undefined },
): Promise<Recovery> {
  return db.transaction(async (tx) => {
    const was = await lockRecovery(tx, recoveryId);
    if (was === null) throw new Refused('not_found', `Recovery ${recoveryId} does not exist.`);
    const other = was.keyId === null || was.state === 'running' ? null : await recoveryUnderWay(tx, was);
    if (other !== null) throw new Refused('conflict', `Recovery ${other} of this partner is under way.`);
    if (was.state === 'done') throw new Refused('conflict', `Recovery ${recoveryId} is done.`);
    const [row] = await tx
      .update(recoveries)
      .set({
        state: 'running',
        runner: ulid(),
        updatedAt: sql`service_now()`,
        ...(perSecond !== undefined && { perSecond }),
      })
      .where(eq(recoveries.recoveryId, recoveryId))
      .returning();
    const details = { partner_id: was.partnerId, sent: was.sent, skipped: was.skipped };
    await appendChange(tx, { actor, action: 'recoveries.resume', subject: recoveryId, details });
    return row as Recovery;
  });
}

/**
 * Sends one notification again for a recovery. That it was sent, and that the recovery has dealt with it, commit together:
 * whatever dies, it is sent once. One that has been delivered, is under way or is gone by now is passed over.
 * @throws TakenOver; EndpointMissing when its endpoint is not active any more, and nothing has changed then.
 */
export async function recoverOne(
  db: Db,
  { recoveryId, runner, actor }: RecoveryRunner,
  item: RecoveryItem,
): Promise<'sent' | 'skipped'> {
  return db.transaction(async (tx) => {
    await lockMine(tx, { recoveryId, runner });
    const done = await resendNotification(tx, item.notificationId, {
      undeliveredOnly: true,
      priority: BULK_PRIORITY,
      recoveryId,
    }).catch((error: unknown) => {
      if (error instanceof Refused && !(error instanceof EndpointMissing)) return null;
      throw error;
    });
    const outcome = done === null ? 'skipped' : 'sent';
    await tx
      .update(recoveries)
      .set({
        [outcome]: sql`${recoveries[outcome]} + 1`,
        lastApplication: item.application,
        lastSequence: item.sequence,
        lastNotification: item.notificationId,
        updatedAt: sql`service_now()`,
      })
      .where(eq(recoveries.recoveryId, recoveryId));
    if (done !== null) {
      const change = resendChange(done, actor);
      await appendChange(tx, { ...change, details: { ...change.details, recovery_id: recoveryId } });
    }
    return outcome;
  });
}

/** Writes down that it is done, or that it was interrupted and may be resumed. @throws TakenOver */
export async function endRecovery(
  db: Db,
  { recoveryId, runner, actor }: RecoveryRunner,
  state: 'interrupted' | 'done',
): Promise<Recovery> {
  return db.transaction(async (tx) => {
    await lockMine(tx, { recoveryId, runner });
    const [row] = await tx
      .update(recoveries)
      .set({ state, updatedAt: sql`service_now()`, ...(state === 'done' && { endedAt: sql`service_now()` }) })
      .where(eq(recoveries.recoveryId, recoveryId))
      .returning();
    const { partnerId, sent, skipped } = row as Recovery;
    const details = { partner_id: partnerId, sent, skipped };
    const action = state === 'done' ? 'recoveries.finish' : 'recoveries.interrupt';
    await appendChange(tx, { actor, action, subject: recoveryId, details });
    return row as Recovery;
  });
}

export async function listRecoveries(
  db: DbOrTransaction,
  { partnerId, limit }: { partnerId?: string | undefined; limit: number },
): Promise<Recovery[]> {
  return db
    .select()
    .from(recoveries)
    .where(given(recoveries.partnerId, partnerId))
    .orderBy(desc(recoveries.recoveryId))
    .limit(limit);
}

export const cursorOf = (recovery: Recovery): RecoveryItem => ({
  application: recovery.lastApplication,
  sequence: recovery.lastSequence,
  notificationId: recovery.lastNotification,
});

async function lockRecovery(tx: DbOrTransaction, recoveryId: string): Promise<Recovery | null> {
  const [row] = await tx.select().from(recoveries).where(eq(recoveries.recoveryId, recoveryId)).for('update');
  return row ?? null;
}

/** The recovery of its own that a partner has under way; at most one in each environment. */
export async function recoveryUnderWay(
  tx: DbOrTransaction,
  { partnerId, environment }: Pick<Recovery, 'partnerId' | 'environment'>,
): Promise<string | null> {
  const [row] = await tx.execute<{ id: string }>(sql`
    select recovery_id as id from recoveries
    where partner_id = ${partnerId} and environment = ${environment} and state = 'running' and key_id is not null`);
  return row?.id ?? null;
}

async function lockMine(
  tx: DbOrTransaction,
  { recoveryId, runner }: Pick<RecoveryRunner, 'recoveryId' | 'runner'>,
): Promise<void> {
  const row = await lockRecovery(tx, recoveryId);
  if (row?.runner === runner && row.state === 'running') return;
  throw new TakenOver(`Another process has resumed recovery ${recoveryId}: this one has stopped.`);
}
