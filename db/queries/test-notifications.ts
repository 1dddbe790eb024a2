import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../connect';
import { notifications } from '../schema';
import { monthUse, reserveMonth, TEST_LIMIT_PER_MONTH } from './reserve-month';
import { findEndpoint } from './webhook-endpoints';

/** Channel on which a dispatcher hears that there is something to send: a hint, never the truth. */
export const NOTIFICATIONS_CHANNEL = 'notifications';

export interface NewTestNotification {
  readonly notificationId: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly partnerId: string;
  readonly environment: 'sandbox' | 'live';
  /** Sent byte for byte. */
  readonly body: string;
  readonly requestId: string;
}

export type TestNotificationAnswer =
  | { readonly kind: 'stored' }
  | { readonly kind: 'no_endpoint' }
  | {
      readonly kind: 'limit_reached';
      readonly limit: number;
      /** Delivered this month. */
      readonly delivered: number;
      /** Under way: each holds a place until it has ended. */
      readonly reserved: number;
      readonly monthEndsAt: Date;
    };

/**
 * Stores a test notification with its place in the month's limit, in one transaction. Nothing is stored, and no place
 * taken, without an active endpoint or when the limit is reached.
 */
export async function insertTestNotification(
  db: DbOrTransaction,
  wanted: NewTestNotification,
): Promise<TestNotificationAnswer> {
  return db.transaction(async (tx) => {
    const endpoint = await findEndpoint(tx, wanted.partnerId, wanted.environment);
    if (endpoint?.state !== 'active') return { kind: 'no_endpoint' };
    const reservedMonth = await reserveMonth(tx, wanted);
    if (reservedMonth === null) {
      return { kind: 'limit_reached', limit: TEST_LIMIT_PER_MONTH, ...(await monthUse(tx, wanted)) };
    }
    await tx.insert(notifications).values({ ...wanted, reservedMonth });
    await tx.execute(sql`select pg_notify(${NOTIFICATIONS_CHANNEL}, ${wanted.notificationId})`);
    return { kind: 'stored' };
  });
}
