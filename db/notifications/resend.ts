import { TEST_EVENT_TYPE } from '../../domain/notification-states';
import type { Tenant } from '../../domain/tenant';
import { appendChange, type Change } from '../audit/change-log';
import { activeEndpointExists, noActiveEndpoint } from '../endpoints/endpoints';
import { type Db, type DbOrTransaction, runPrepared } from '../postgres/connect';
import { hint } from '../postgres/hints';
import { Refused } from '../refused';
import { fromText, isDue, lockNotification, updateText, type Notification } from './notification';
import { monthUse, reserveMonth, TestLimitReached } from './quota';

interface ResentNotification {
  readonly was: Notification;
  readonly generation: number;
}

export const resendChange = ({ was, generation }: ResentNotification, actor: string): Change => ({
  actor,
  action: 'notifications.resend',
  subject: was.notificationId,
  details: { partner_id: was.partnerId, generation, was: was.state },
});

interface ResendOptions {
  /** Refuses a notification that was delivered once or cancelled. Default: false. */
  readonly undeliveredOnly?: boolean;
  /** 0: with live notifications; 1: after all of them. Default: 0. */
  readonly priority?: 0 | 1;
  /** The recovery that sends it. Default: an earlier one stays. */
  readonly recoveryId?: string;
  /** The partner that asks. Notifications of others do not exist for it, and tests are not resent. */
  readonly owner?: Tenant;
}

// A notification that has ended loses its end, and gets a row in deliveries.
const BEGIN = `
  with n as (
    update notifications
    set end_state = null, end_reason = null, ended_at = null, sent_again_at = service_now(), recovery_id = coalesce($3, recovery_id)
    where notification_id = $1 and end_state is not null
    returning notification_id, partner_id, environment, application_id, sequence, event_type, generation, attempts, delivered_at)
  insert into deliveries (notification_id, partner_id, environment, application_id, sequence, test, delivered, priority, generation,
    attempts, reserved_month)
  select notification_id, partner_id, environment, application_id, sequence, event_type = '${TEST_EVENT_TYPE}',
    delivered_at is not null, $2::smallint, generation + 1, attempts, $4::date
  from n returning 1`;
const RELEASE = `
  with n as (update notifications set recovery_id = $3::text where notification_id = $1 and $3::text is not null)
  ${updateText('release', { due_at: 'service_now()', priority: '$2::smallint' })}
  where d.notification_id = $1 and ${fromText('release')} returning 1`;

/**
 * Resends an ended or held notification as the next generation, with the same id and body. A test takes
 * a unit of the quota.
 * @throws Refused
 */
export async function resendNotification(
  tx: DbOrTransaction,
  notificationId: string,
  options: ResendOptions = {},
): Promise<ResentNotification> {
  const { undeliveredOnly = false, priority = 0, recoveryId = null, owner } = options;
  const was = await lockNotification(tx, notificationId, owner);
  if (was === null) throw new Refused('not_found', `Notification ${notificationId} does not exist.`);
  const { state, deliveredMs } = was;
  const isTest = was.eventType === TEST_EVENT_TYPE;
  const refuse = (why: 'under_way' | 'test' | 'payload_removed' | undefined, message: string) =>
    new Refused('conflict', `Notification ${notificationId} ${message}`, why);
  if (state === 'queued' || state === 'started')
    throw refuse('under_way', 'is under way: use retry-now instead.');
  if (owner !== undefined && isTest) throw refuse('test', 'is a test: send a new one.');
  if (undeliveredOnly && (deliveredMs !== null || state === 'cancelled'))
    throw refuse(undefined, `was ${state} meanwhile.`);
  if (!was.hasBody) {
    const why = 'its body was removed, as its time of keeping is over (ops retention show)';
    throw refuse('payload_removed', `cannot be sent again: ${why}.`);
  }
  if (!(await activeEndpointExists(tx, was))) throw noActiveEndpoint(was);
  const reserved = isTest ? await unitOfTest(tx, was) : null;
  if (state === 'held') await runPrepared(tx, RELEASE, [notificationId, priority, recoveryId]);
  else await runPrepared(tx, BEGIN, [notificationId, priority, recoveryId, reserved]);
  hint(tx, isDue(was));
  return { was, generation: was.generation + 1 };
}

// Reserves a unit for a test. One that was delivered has been counted already.
async function unitOfTest(tx: DbOrTransaction, was: Notification): Promise<string> {
  if (was.deliveredMs !== null)
    throw new Refused(
      'conflict',
      `Test notification ${was.notificationId} was delivered: send a new one (ops webhooks test).`,
    );
  const month = await reserveMonth(tx, was);
  if (month !== null) return month;
  throw new TestLimitReached(was, await monthUse(tx, was));
}

export async function resendForPartner(
  db: Db,
  notificationId: string,
  { owner, keyId }: { readonly owner: Tenant; readonly keyId: string },
): Promise<{ readonly eventId: string }> {
  return db.transaction(async (tx) => {
    const resent = await resendNotification(tx, notificationId, { owner });
    await appendChange(tx, resendChange(resent, keyId));
    return { eventId: resent.was.eventId };
  });
}
