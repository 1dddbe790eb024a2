import type { Tenant } from '../../domain/tenant';
import type { DbOrTransaction } from '../postgres/connect';
import { hint } from '../postgres/hints';
import { runPrepared, type Reader } from '../postgres/prepared';
import type { notifications } from '../schema';
import { hasActiveEndpoint, TENANT } from '../endpoints/endpoints';
import { noEndpointReason, SOMETHING_IS_DUE } from './notification';
import { addMonth, monthUse, OF_THIS_MONTH, TAKE_UNIT, TEST_LIMIT_PER_MONTH, type MonthUse } from './quota';

type Stored = typeof notifications.$inferSelect;

type NewStatusNotification = Pick<
  Stored,
  'notificationId' | 'eventId' | 'eventType' | 'partnerId' | 'environment' | 'applicationId' | 'sequence'
> &
  Pick<Stored, 'merchantReference' | 'body' | 'createdAt' | 'requestId'> &
  Partial<Pick<Stored, 'traceParent'>>;

const STORE_STATUS = `
  with stored as (
    insert into notifications (notification_id, event_id, event_type, partner_id, environment, application_id,
      sequence, merchant_reference, body, created_at, request_id, trace_parent)
    values ($1, $2, $3, $4, $5, $6, $7::int, $8, $9, $10::text::timestamptz, $11, $12)
    returning notification_id, partner_id, environment, application_id, sequence),
  born as (select *, ${hasActiveEndpoint('stored')} as active from stored)
  insert into deliveries (notification_id, partner_id, environment, application_id, sequence, test, state, hold_reason, held_at)
  select notification_id, partner_id, environment, application_id, sequence, false,
    case when active then 'queued' else 'held' end, case when not active then ${noEndpointReason('born')} end,
    case when not active then service_now() end
  from born returning state`;

/**
 * Stores a status notification in one statement, because the application's lock is held meanwhile. The dispatcher is woken
 * after the commit. It begins as `queued`, or as `held` while its partner has no active endpoint; should one come or go
 * meanwhile, the keeper puts it right. Not for tests, which are never held.
 */
export async function storeStatusNotification(
  tx: DbOrTransaction,
  row: NewStatusNotification,
): Promise<void> {
  const { notificationId, eventId, eventType, partnerId, environment } = row;
  const { applicationId, sequence, merchantReference, body, createdAt, requestId, traceParent = null } = row;
  const [stored] = await runPrepared<{ state: string }>(tx, STORE_STATUS, [
    notificationId,
    eventId,
    eventType,
    partnerId,
    environment,
    applicationId,
    sequence,
    merchantReference,
    body,
    createdAt.toISOString(),
    requestId,
    traceParent,
  ]);
  if (stored?.state === 'queued') hint(tx, SOMETHING_IS_DUE);
}

export interface NewTestNotification extends Tenant {
  readonly notificationId: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly body: string;
  readonly requestId: string;
  /** `traceparent` of the request; none where no traces are made. */
  readonly traceParent?: string | null;
}

export type TestNotificationAnswer =
  | { readonly kind: 'stored' }
  | { readonly kind: 'no_endpoint' }
  | ({ readonly kind: 'limit_reached'; readonly limit: number } & MonthUse);

const STORE_TEST = `
  with unit as (${TAKE_UNIT} and ${hasActiveEndpoint('monthly_counts')} returning month),
  stored as (
    insert into notifications (partner_id, environment, event_type, notification_id, event_id, body, request_id, trace_parent)
    select $1, $2, $3, $4, $5, $6, $7, $8 from unit returning notification_id),
  queued as (
    insert into deliveries (notification_id, partner_id, environment, test, reserved_month)
    select notification_id, $1, $2, true, month from stored, unit returning 1)
  select ${hasActiveEndpoint('tenant')} as active, exists (select 1 from monthly_counts where ${OF_THIS_MONTH}) as counted,
    exists (select 1 from queued) as stored
  from ${TENANT}`;

/**
 * Stores a test notification with its unit of the month's limit in one statement, and then wakes the dispatcher: the calls
 * of a partner lock its count one after the other, so each may hold it for no longer than a commit. Nothing is stored,
 * and no unit taken, without an active endpoint or when the limit is reached.
 */
export async function insertTestNotification(
  reader: Reader,
  wanted: NewTestNotification,
): Promise<TestNotificationAnswer> {
  const { notificationId, eventId, eventType, partnerId, environment, body, requestId, traceParent } = wanted;
  const parameters = [partnerId, environment, eventType, notificationId, eventId, body, requestId];
  for (;;) {
    const [row] = await runPrepared<{ active: boolean; counted: boolean; stored: boolean }>(
      reader,
      STORE_TEST,
      [...parameters, traceParent ?? null],
    );
    if (row?.stored) {
      hint(reader, SOMETHING_IS_DUE);
      return { kind: 'stored' };
    }
    if (!row?.active) return { kind: 'no_endpoint' };
    if (!row.counted) {
      await addMonth(reader, wanted);
      continue;
    }
    const use = await monthUse(reader, wanted);
    // Else one that was under way has failed in between, or the month has ended: there is room now.
    if (use.delivered + use.reserved >= TEST_LIMIT_PER_MONTH)
      return { kind: 'limit_reached', limit: TEST_LIMIT_PER_MONTH, ...use };
  }
}

/** Where a notification stands, for whoever waits for it. */
export interface NotificationProgress {
  readonly state: NonNullable<Stored['endState']> | 'queued' | 'started' | 'held';
  /** Why it ended otherwise than delivered. */
  readonly endReason: string | null;
  /** The last attempt that has ended; null while there is none. */
  readonly attempt: { readonly httpStatus: number | null; readonly durationMs: number } | null;
}

const PROGRESS = `
  select n.state, n.end_reason as "endReason", a.http_status as "httpStatus", a.duration_ms as "durationMs"
  from notifications_now n
  left join delivery_attempts a on a.notification_id = $1 and a.duration_ms is not null
  where n.notification_id = $1
  order by a.attempt_number desc nulls last limit 1`;

export async function readProgress(
  reader: Reader,
  notificationId: string,
): Promise<NotificationProgress | null> {
  type Row = Pick<NotificationProgress, 'state' | 'endReason'> & {
    readonly httpStatus: number | null;
    readonly durationMs: number | null;
  };
  const [row] = await runPrepared<Row>(reader, PROGRESS, [notificationId]);
  if (row === undefined) return null;
  const { state, endReason, httpStatus, durationMs } = row;
  return { state, endReason, attempt: durationMs === null ? null : { httpStatus, durationMs } };
}
