import { ulid } from 'ulid';
import type { ApplicationState } from '../../domain/application-states';
import type { WriteChange } from '../../domain/application';
import type { NotificationState } from '../../domain/notification-states';
import type { DbOrTransaction } from '../postgres/connect';
import { msText, runPrepared, type Reader } from '../postgres/prepared';
import type { creditApplications } from '../schema';
import { storeStatusNotification } from '../notifications/create';

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

/** A notification of an application, without its body. */
export interface StatusNotification {
  readonly notificationId: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly sequence: number;
  readonly state: NotificationState;
  /** Why it ended, or is held. */
  readonly endReason: string | null;
  readonly createdAt: Date;
  readonly deliveredAt: Date | null;
}

const LIST = `
  select n.notification_id as "notificationId", n.event_id as "eventId", n.event_type as "eventType", n.sequence, n.state,
    n.end_reason as "endReason", ${msText('n.created_at')} as "createdMs", ${msText('n.delivered_at')} as "deliveredMs"
  from credit_applications a
  join notifications_now n on n.application_id = a.application_id and n.partner_id = a.partner_id and n.environment = a.environment
  where a.application_id = $1 order by n.sequence`;

/** The notifications of an application, in their order. Those of dropped months are not there. */
export async function listStatusNotifications(
  reader: Reader,
  applicationId: string,
): Promise<StatusNotification[]> {
  type Row = Omit<StatusNotification, 'createdAt' | 'deliveredAt'> & {
    readonly createdMs: number;
    readonly deliveredMs: number | null;
  };
  const rows = await runPrepared<Row>(reader, LIST, [applicationId]);
  return rows.map(({ createdMs, deliveredMs, ...row }) => ({
    ...row,
    createdAt: new Date(createdMs),
    deliveredAt: deliveredMs === null ? null : new Date(deliveredMs),
  }));
}
