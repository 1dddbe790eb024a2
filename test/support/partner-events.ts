import { ulid } from 'ulid';
import { createPartner } from '../../db/catalogue/partners';
import { issueKey } from '../../db/keys';
import type { Database } from '../../db/postgres/connect';
import { recordAttempt } from '../../db/notifications/attempt';
import type { NotificationState } from '../../domain/notification-states';
import type { DeliveryOutcome } from '../../domain/delivery-outcome';
import { openedAttempt, putInState, standingOf } from '../../testbed/notifications';

export async function addPartner(
  { db }: Pick<Database, 'db'>,
  partnerId: string,
): Promise<{ readonly partnerId: string; readonly test: string; readonly live: string }> {
  return db.transaction(async (tx) => {
    await createPartner(tx, { partnerId, name: 'Another' });
    const issue = async (environment: 'sandbox' | 'live') =>
      (await issueKey(tx, { partnerId, environment, expiresInSeconds: null })).key;
    return { partnerId, test: await issue('sandbox'), live: await issue('live') };
  });
}

export interface StoredRow {
  readonly partnerId: string;
  readonly environment?: 'sandbox' | 'live';
  readonly eventId?: string;
  readonly state?: NotificationState;
  readonly eventType?: string;
  readonly applicationId?: string | null;
  readonly merchantReference?: string | null;
  readonly sequence?: number;
  readonly body?: string;
  readonly at?: Date;
}

/** Puts a notification into the table as it would be in a state. @returns its id */
export async function storeRow({ sql }: Pick<Database, 'sql'>, wanted: StoredRow): Promise<string> {
  const { partnerId, environment = 'sandbox', state = 'delivered', at = new Date() } = wanted;
  const { eventType = 'credit_application.accepted', merchantReference = null, body } = wanted;
  const isTest = eventType === 'credit_application.test';
  const applicationId = isTest ? null : (wanted.applicationId ?? `app_${ulid()}`);
  const notificationId = `ntf_${ulid(at.getTime())}`;
  const { eventId = `evt_${ulid()}` } = wanted;
  await sql`insert into notifications ${sql({
    notification_id: notificationId,
    event_id: eventId,
    event_type: eventType,
    partner_id: partnerId,
    environment,
    application_id: applicationId,
    sequence: isTest ? null : (wanted.sequence ?? 1),
    merchant_reference: merchantReference,
    body: body ?? JSON.stringify({ event_id: eventId, event_type: eventType }),
    created_at: at.toISOString(),
  })}`;
  await putInState({ sql }, notificationId, state);
  return notificationId;
}

/**
 * Makes an attempt, whenever the next one is planned.
 * @param retryInMs when it fails, the next one is planned for then; null: there is none
 */
export async function attempt(
  database: Database,
  notificationId: string,
  outcome: DeliveryOutcome,
  retryInMs: number | null = null,
): Promise<void> {
  const { generation } = await standingOf(database, notificationId);
  await database.sql`
    update deliveries set ladder_ms = ${retryInMs === null ? '{0}' : `{${'0,'.repeat(99)}0}`}::text::integer[],
      next_attempt_at = null
    where notification_id = ${notificationId}`;
  const { attemptNumber } = await openedAttempt(database, { notificationId, generation });
  await recordAttempt(database.db, { notificationId, attemptNumber }, { outcome, address: null });
  if (retryInMs !== null)
    await database.sql`
      update deliveries set next_attempt_at = service_now() + make_interval(secs => ${retryInMs / 1_000})
      where notification_id = ${notificationId}`;
}
