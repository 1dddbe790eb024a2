import { ulid } from 'ulid';
import type { WriteChange } from '../../domain/application';
import type { ApplicationState } from '../../domain/application-states';
import type { Tenant } from '../../domain/tenant';
import type { Application } from '../applications/applications';
import { hasActiveEndpoint, noActiveEndpoint, TENANT } from '../endpoints/endpoints';
import { oneRow, type DbOrTransaction, type Reader } from '../postgres/connect';
import { hint } from '../postgres/hints';
import type { notifications } from '../schema';
import { isDue } from './notification';
import { addMonth, monthUse, THIS_MONTH, TAKE_UNIT, TestLimitReached, TEST_LIMIT_PER_MONTH } from './quota';

const STORE_STATUS = `
  with stored as (
    insert into notifications (notification_id, event_id, event_type, partner_id, environment, application_id,
      sequence, merchant_reference, body, created_at, request_id, trace_parent)
    values ($1, $2, $3, $4, $5, $6, $7::int, $8, $9, $10::text::timestamptz, $11, $12)
    returning notification_id, partner_id, environment, application_id, sequence),
  born as (select *, ${hasActiveEndpoint('stored')} as active from stored)
  insert into deliveries (notification_id, partner_id, environment, application_id, sequence, test, state, hold_reason, held_at)
  select notification_id, partner_id, environment, application_id, sequence, false,
    case when active then 'queued' else 'held' end, case when not active then no_endpoint_reason_1(partner_id, environment) end,
    case when not active then service_now() end
  from born returning state`;

/**
 * Stores the notification of the state that an application has just reached, in the transaction of that
 * change. The row of the application is locked, so one statement keeps the lock short. The notification
 * is `queued`, with a hint after the commit, or `held` without an active endpoint.
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
  const { partnerId, environment, applicationId, sequence, merchantReference, state } = application;
  const { requestId, traceParent = null, write } = cause;
  const createdAt = application.updatedAt;
  const notificationId = `ntf_${ulid(createdAt.getTime())}`;
  const eventId = `evt_${ulid(createdAt.getTime())}`;
  const occurredAt = application.stateOccurredAt;
  const body = write({ ...application, eventId, createdAt, status: state, previousStatus, occurredAt });
  const ids = [notificationId, eventId, `credit_application.${state}`, partnerId, environment, applicationId];
  const rest = [sequence, merchantReference, body, createdAt.toISOString(), requestId, traceParent];
  const stored = await oneRow<{ state: string }>(tx, STORE_STATUS, [...ids, ...rest]);
  if (stored.state === 'queued') hint(tx, isDue(application));
}

export interface NewTestNotification
  extends
    Tenant,
    Pick<typeof notifications.$inferSelect, 'notificationId' | 'eventId' | 'eventType' | 'body'> {
  readonly requestId: string;
  readonly traceParent?: string | null;
}

const STORE_TEST = `
  with unit as (${TAKE_UNIT} and ${hasActiveEndpoint('monthly_counts')} returning month),
  stored as (
    insert into notifications (partner_id, environment, event_type, notification_id, event_id, body, request_id, trace_parent)
    select $1, $2, $3, $4, $5, $6, $7, $8 from unit returning notification_id),
  queued as (
    insert into deliveries (notification_id, partner_id, environment, test, reserved_month)
    select notification_id, $1, $2, true, month from stored, unit returning 1)
  select ${hasActiveEndpoint('tenant')} as active, exists (select 1 from monthly_counts where ${THIS_MONTH}) as counted,
    exists (select 1 from queued) as stored
  from ${TENANT}`;

/**
 * Stores a test notification with its unit of the quota, and wakes the dispatcher. The calls of a
 * partner lock its count in turn; one statement keeps that lock short.
 * @throws Refused without an active endpoint, TestLimitReached when no unit is left; then nothing is
 * stored
 */
export async function insertTestNotification(reader: Reader, wanted: NewTestNotification): Promise<void> {
  const { notificationId, eventId, eventType, partnerId, environment, body, requestId } = wanted;
  const { traceParent = null } = wanted;
  const values = [partnerId, environment, eventType, notificationId, eventId, body, requestId, traceParent];
  type Outcome = { readonly active: boolean; readonly counted: boolean; readonly stored: boolean };
  for (;;) {
    const { active, counted, stored } = await oneRow<Outcome>(reader, STORE_TEST, values);
    if (stored) {
      hint(reader, isDue(wanted));
      return;
    }
    if (!active) throw noActiveEndpoint(wanted);
    if (!counted) {
      await addMonth(reader, wanted);
      continue;
    }
    const use = await monthUse(reader, wanted);
    // Otherwise a unit is free again: a test has failed meanwhile, or the month has ended.
    if (use.delivered + use.reserved >= TEST_LIMIT_PER_MONTH) throw new TestLimitReached(wanted, use);
  }
}
