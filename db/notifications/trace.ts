import { eq } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { notifications } from '../schema';

/** Which request caused a notification, for traces. */
export interface NotificationTrace {
  readonly requestId: string | null;
  readonly traceParent: string | null;
}

/** Reads it; null when there is no such notification. */
export async function readTrace(
  db: DbOrTransaction,
  notificationId: string,
): Promise<NotificationTrace | null> {
  const { requestId, traceParent } = notifications;
  const [row] = await db
    .select({ requestId, traceParent })
    .from(notifications)
    .where(eq(notifications.notificationId, notificationId));
  return row ?? null;
}
