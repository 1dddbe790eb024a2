import { ulid } from 'ulid';
import type { WriteChange } from '../../domain/application';
import type { ApplicationState } from '../../domain/application-states';
import type { Tenant } from '../../domain/tenant';
import type { Application } from '../applications/applications';
import { hasActiveEndpoint, noActiveEndpoint, TENANT } from '../endpoints/endpoints';
import { oneRow, type Reader } from '../postgres/connect';
import { hint } from '../postgres/hints';
import type { notifications } from '../schema';
import { isDue } from './notification';
import { addMonth, monthUse, THIS_MONTH, TAKE_UNIT, TestLimitReached, TEST_LIMIT_PER_MONTH } from './quota';

/** What caused a change of an application's state. */
export interface ChangeCause {
  readonly requestId: string | null;
  readonly traceParent?: string | null;
  readonly write: WriteChange;
}

/** The notification of the state that an application has just reached: its ids and its body. */
export function statusNotification(
  application: Application,
  previousStatus: ApplicationState | null,
  write: WriteChange,
): { readonly notificationId: string; readonly eventId: string; readonly body: string } {
  const { state: status, stateOccurredAt: occurredAt, updatedAt: createdAt } = application;
  const notificationId = `ntf_${ulid(createdAt.getTime())}`;
  const eventId = `evt_${ulid(createdAt.getTime())}`;
  const body = write({ ...application, eventId, createdAt, status, previousStatus, occurredAt });
  return { notificationId, eventId, body };
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
