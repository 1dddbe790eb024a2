import { and, desc, eq, isNotNull } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { deliveryAttempts, notifications } from '../schema';

/** Where a notification stands, for whoever waits for it. */
export interface NotificationProgress {
  readonly state: typeof notifications.$inferSelect.state;
  /** Why it ended otherwise than delivered. */
  readonly endReason: string | null;
  /** The last attempt that has ended; null while there is none. */
  readonly attempt: { readonly httpStatus: number | null; readonly durationMs: number } | null;
}

export async function readProgress(
  db: DbOrTransaction,
  notificationId: string,
): Promise<NotificationProgress | null> {
  const [row] = await db
    .select({
      state: notifications.state,
      endReason: notifications.endReason,
      attempts: deliveryAttempts.attemptNumber,
      httpStatus: deliveryAttempts.httpStatus,
      durationMs: deliveryAttempts.durationMs,
    })
    .from(notifications)
    .leftJoin(
      deliveryAttempts,
      and(
        eq(deliveryAttempts.notificationId, notifications.notificationId),
        isNotNull(deliveryAttempts.durationMs),
      ),
    )
    .where(eq(notifications.notificationId, notificationId))
    .orderBy(desc(deliveryAttempts.attemptNumber))
    .limit(1);
  if (row === undefined) return null;
  const { state, endReason, httpStatus, durationMs } = row;
  return { state, endReason, attempt: durationMs === null ? null : { httpStatus, durationMs } };
}
