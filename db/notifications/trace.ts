import { eq } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { notifications } from '../schema';

/** Which request caused a notification, for traces; null when there is no such notification. */
export async function readTrace(db: DbOrTransaction, notificationId: string) {
  const { requestId, traceParent } = notifications;
  const [row] = await db
    .select({ requestId, traceParent })
    .from(notifications)
    .where(eq(notifications.notificationId, notificationId));
  return row ?? null;
}
