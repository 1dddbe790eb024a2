import { asc, eq } from 'drizzle-orm';
import { ulid } from 'ulid';
import type { ApplicationState } from '../../domain/application-states';
import type { WriteChange } from '../../domain/application';
import type { DbOrTransaction } from '../postgres/connect';
import { notifications, type creditApplications } from '../schema';
import { storeStatusNotification } from '../notifications/enqueue-status';

export type Application = typeof creditApplications.$inferSelect;

/**
 * Stores the notification of the state that an application has just come into, in the transaction that brought it there:
 * its row is locked, and its `sequence` has been counted on. Without an active endpoint it is held.
 */
export async function insertStatusNotification(
  tx: DbOrTransaction,
  application: Application,
  previousStatus: ApplicationState | null,
  cause: {
    readonly requestId: string | null;
    readonly traceParent?: string | null;
    readonly write: WriteChange;
  },
): Promise<void> {
  const { requestId, traceParent = null, write } = cause;
  const { state } = application;
  const createdAt = application.updatedAt;
  const notificationId = `ntf_${ulid(createdAt.getTime())}`;
  const eventId = `evt_${ulid(createdAt.getTime())}`;
  const body = write({
    ...application,
    eventId,
    createdAt,
    status: state,
    previousStatus,
    occurredAt: application.stateOccurredAt,
  });
  await storeStatusNotification(tx, {
    ...application,
    notificationId,
    eventId,
    eventType: `credit_application.${state}`,
    body,
    createdAt,
    requestId,
    traceParent,
  });
}

/** The notifications of an application without their bodies, in their order. Those of dropped months are not there. */
export async function listStatusNotifications(db: DbOrTransaction, applicationId: string) {
  const { notificationId, eventId, eventType, sequence, state, endReason, createdAt, deliveredAt } =
    notifications;
  return db
    .select({ notificationId, eventId, eventType, sequence, state, endReason, createdAt, deliveredAt })
    .from(notifications)
    .where(eq(notifications.applicationId, applicationId))
    .orderBy(asc(notifications.sequence));
}

export type StatusNotification = Awaited<ReturnType<typeof listStatusNotifications>>[number];
