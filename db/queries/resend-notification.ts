import { eq, sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../connect';
import { notifications } from '../schema';
import { lockNotification, type Notification } from './notifications';
import { Refused } from './refused';
import { monthUse, reserveMonth, TEST_LIMIT_PER_MONTH } from './reserve-month';
import { NOTIFICATIONS_CHANNEL } from './test-notifications';
import { findEndpoint } from './webhook-endpoints';

/** What is sent again, and as which generation. */
export interface ResentNotification {
  readonly was: Notification;
  readonly generation: number;
}

/**
 * Sends a notification that has ended, or is held, again: due now, under the next generation, with the same event id and
 * body. A test first takes a place in this month's limit.
 * @param testEventType the event type that the monthly limit is for.
 * @throws Refused when it is missing or still under way, has no active endpoint, or the limit is reached.
 */
export async function resendNotification(
  tx: DbOrTransaction,
  notificationId: string,
  { testEventType }: { testEventType: string },
): Promise<ResentNotification> {
  const was = await lockNotification(tx, notificationId);
  if (was === null) throw new Refused('not_found', `Notification ${notificationId} does not exist.`);
  if (was.state === 'pending' || was.state === 'started') {
    throw new Refused('conflict', `Notification ${notificationId} is under way: use retry-now instead.`);
  }
  const endpoint = await findEndpoint(tx, was.partnerId, was.environment);
  if (endpoint?.state !== 'active') {
    const what = `${was.partnerId} has no active ${was.environment} endpoint`;
    throw new Refused('conflict', `${what}: register or enable one first (ops webhooks).`);
  }
  const generation = was.generation + 1;
  const reservedMonth = was.eventType === testEventType ? await placeOfTest(tx, was) : null;
  await tx
    .update(notifications)
    .set({
      state: 'pending',
      generation,
      reservedMonth,
      endReason: null,
      endedAt: null,
      takenAt: null,
      startedAt: null,
      firstAttemptAt: null,
      checkedAt: null,
      dueAt: sql`service_now()`,
    })
    .where(eq(notifications.notificationId, notificationId));
  await tx.execute(sql`select pg_notify(${NOTIFICATIONS_CHANNEL}, ${notificationId})`);
  return { was, generation };
}

/** Every notification counts once: a test that was delivered could be delivered again without being counted. */
async function placeOfTest(tx: DbOrTransaction, was: Notification): Promise<string> {
  if (was.deliveredAt !== null) {
    throw new Refused(
      'conflict',
      `Test notification ${was.notificationId} was delivered: send a new one (ops webhooks test).`,
    );
  }
  const month = await reserveMonth(tx, was);
  if (month !== null) return month;
  const { delivered, reserved, monthEndsAt } = await monthUse(tx, was);
  throw new Refused(
    'conflict',
    `The limit of ${TEST_LIMIT_PER_MONTH} test notifications is reached for ${was.partnerId}, ${was.environment}: ` +
      `${delivered} delivered and ${reserved} under way this month, which ends at ${monthEndsAt.toISOString()}.`,
  );
}
