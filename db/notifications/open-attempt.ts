import { and, eq, isNull, sql } from 'drizzle-orm';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { deliveryAttempts } from '../schema';
import { closeUnfinished } from './close-unfinished';
import { noEndpointReason } from './hold';
import { lockNotification, type Notification } from './read';
import { currentMonth, releaseMonth, reserveMonth } from './quota';
import { applyEvent } from './transition';
import { updateSql } from './update';
import { findEndpoint, liveSecrets, type SealedSecret } from '../endpoints/endpoints';
import { liveKeyPairs, type SealedKeyPair } from '../endpoints/key-pairs';

/** What an attempt needs, or why there is none to make. */
export type OpenedAttempt =
  | {
      readonly kind: 'open';
      readonly attemptNumber: number;
      readonly notification: Pick<
        Notification,
        | 'eventId'
        | 'eventType'
        | 'body'
        | 'partnerId'
        | 'environment'
        | 'applicationId'
        | 'sequence'
        | 'merchantReference'
        | 'requestId'
        | 'traceParent'
      > & {
        readonly ageMs: number;
      };
      readonly endpoint: { readonly endpointId: string; readonly url: string };
      readonly secrets: readonly Omit<SealedSecret, 'createdAt' | 'expiresAt'>[];
      /** Of the notification's partner and environment. */
      readonly keyPairs: readonly Pick<SealedKeyPair, 'keyPairId' | 'publicKey' | 'keyId' | 'ciphertext'>[];
    }
  /** It has ended, or is held: whoever asks has nothing left to do. */
  | { readonly kind: 'over'; readonly state: Notification['state']; readonly reason: string | null }
  /** Another generation has taken over, or the row is gone. */
  | { readonly kind: 'superseded' }
  | { readonly kind: 'no_endpoint'; readonly eventType: string; readonly reason: string }
  /** A test whose new month has no place left. */
  | { readonly kind: 'monthly_limit' };

/**
 * Writes the row of an attempt before it is sent; the row lock numbers attempts, not Temporal. A row left unfinished by
 * a process that died is closed as `unknown`. The endpoint and what signs for it are those of now, not of the first attempt.
 * A test's place in the limit moves to the UTC month that this attempt starts in.
 */
export async function openAttempt(
  db: Db,
  { notificationId, generation }: { notificationId: string; generation: number },
): Promise<OpenedAttempt> {
  return db.transaction(async (tx) => {
    const row = await lockNotification(tx, notificationId);
    if (row === null || row.generation !== generation) return { kind: 'superseded' };
    const { state, endReason } = row;
    if (state !== 'pending' && state !== 'started') return { kind: 'over', state, reason: endReason };
    await closeUnfinished(tx, notificationId);
    const endpoint = await findEndpoint(tx, row.partnerId, row.environment);
    if (endpoint?.state !== 'active')
      return { kind: 'no_endpoint', eventType: row.eventType, reason: noEndpointReason(endpoint) };
    const secrets = await liveSecrets(tx, endpoint.endpointId);
    const keyPairs = await liveKeyPairs(tx, row);
    const moved = await moveReservation(tx, row);
    if (moved === undefined) return { kind: 'monthly_limit' };
    const attemptNumber = row.attempts + 1;
    const { endpointId, url } = endpoint;
    await tx.insert(deliveryAttempts).values({ notificationId, attemptNumber, generation, endpointId });
    const [noted] = await tx.execute<{ ageMs: number }>(sql`
      ${updateSql('attempt', {
        attempts: sql`${attemptNumber}`,
        reserved_month: sql`${moved.month}::date`,
        // A start that Temporal did not confirm in time was given back; its first attempt fills a slot all the same.
        taken_at: row.firstAttemptAt === null ? sql`coalesce(t.taken_at, service_now())` : sql`t.taken_at`,
      })}
      where t.notification_id = ${notificationId}
      returning (extract(epoch from service_now() - t.created_at) * 1000)::float8 as "ageMs"`);
    const notification = { ...row, ageMs: noted?.ageMs ?? 0 };
    return { kind: 'open', attemptNumber, notification, endpoint: { endpointId, url }, secrets, keyPairs };
  });
}

/** Takes back the row of an attempt that could not be signed: nothing was sent. Its number is free again. */
export async function forgetAttempt(
  db: Db,
  { notificationId, attemptNumber }: { notificationId: string; attemptNumber: number },
): Promise<void> {
  await db.transaction(async (tx) => {
    const row = await lockNotification(tx, notificationId);
    if (row?.attempts !== attemptNumber) return;
    const mine = and(
      eq(deliveryAttempts.notificationId, notificationId),
      eq(deliveryAttempts.attemptNumber, attemptNumber),
      isNull(deliveryAttempts.finishedAt),
    );
    const deleted = await tx
      .delete(deliveryAttempts)
      .where(mine)
      .returning({ is: deliveryAttempts.attemptNumber });
    if (deleted.length === 0) return;
    await applyEvent(tx, row, 'forget_attempt', {
      attempts: sql`${attemptNumber - 1}`,
      first_attempt_at: sql`(select min(a.started_at) from delivery_attempts a
        where a.notification_id = ${notificationId} and a.generation = ${row.generation})`,
    });
  });
}

/** @returns the month in which the unit of the quota is reserved from now on, null without one; undefined when that month is full. */
async function moveReservation(
  tx: DbOrTransaction,
  row: Notification,
): Promise<{ month: string | null } | undefined> {
  if (row.reservedMonth === null) return { month: null };
  if ((await currentMonth(tx)) === row.reservedMonth) return { month: row.reservedMonth };
  const month = await reserveMonth(tx, row);
  if (month === null) return undefined;
  await releaseMonth(tx, row, row.reservedMonth);
  return { month };
}
