import { decodeTime, encodeTime } from 'ulid';
import {
  DELIVERY_CHANGES,
  type DeliveryChange,
  type DeliveryEvent,
  type NotificationState,
} from '../../domain/notification-states';
import type { Tenant } from '../../domain/tenant';
import type { Hint } from '../postgres/hints';
import { msText, runPrepared, type Reader } from '../postgres/prepared';

/** Which notification, and as which generation: one workflow. */
export interface NotificationRef {
  readonly notificationId: string;
  readonly generation: number;
}

/** A notification as it stands, wherever it is stored (view notifications_now). Moments in Unix milliseconds. */
export interface Notification extends NotificationRef, Tenant {
  readonly eventId: string;
  readonly eventType: string;
  readonly applicationId: string | null;
  readonly sequence: number | null;
  readonly state: NotificationState;
  /** Why it ended, or is held. */
  readonly endReason: string | null;
  readonly attempts: number;
  readonly deliveredMs: number | null;
  /** Whether its body is still stored. */
  readonly hasBody: boolean;
}

export const NOTIFICATION = `
  n.notification_id as "notificationId", n.generation, n.partner_id as "partnerId", n.environment, n.event_id as "eventId",
  n.event_type as "eventType", n.application_id as "applicationId", n.sequence, n.state, n.end_reason as "endReason", n.attempts,
  ${msText('n.delivered_at')} as "deliveredMs", n.body <> '' as "hasBody"`;

// The notification first, then its row in deliveries: everything that needs both locks them in this order.
const LOCK = `select 1 from notifications where notification_id = $1 and ($2::text is null or (partner_id, environment) = ($2, $3))
  for update`;
const LOCK_DELIVERY = `select 1 from deliveries where notification_id = $1 for update`;
const READ = `select ${NOTIFICATION} from notifications_now n where n.notification_id = $1`;

/**
 * Reads a notification, and locks it until the transaction ends.
 * @param owner whose it must be: others' are neither found nor waited for. Absent: anybody's.
 */
export async function lockNotification(
  tx: Reader,
  notificationId: string,
  owner?: Tenant,
): Promise<Notification | null> {
  const whose = [notificationId, owner?.partnerId ?? null, owner?.environment ?? null];
  if ((await runPrepared(tx, LOCK, whose)).length === 0) return null;
  await runPrepared(tx, LOCK_DELIVERY, [notificationId]);
  const [row] = await runPrepared<Notification>(tx, READ, [notificationId]);
  return row ?? null;
}

/** Which request caused a notification, for traces; null when there is no such notification. */
export async function readTrace(reader: Reader, notificationId: string) {
  const [row] = await runPrepared<{ requestId: string | null; traceParent: string | null }>(
    reader,
    `select request_id as "requestId", trace_parent as "traceParent" from notifications where notification_id = $1`,
    [notificationId],
  );
  return row ?? null;
}

type Given<E extends DeliveryEvent> = (typeof DELIVERY_CHANGES)[E] extends {
  readonly given: readonly (infer Field extends string)[];
}
  ? Readonly<Record<Field, string>>
  : Readonly<Record<string, never>>;

/**
 * `update deliveries d set …` for an event, as domain/notification-states.ts has it: a constant text to be prepared. But for claim.sql,
 * open.sql and record.sql, no other text changes a row.
 * @param given expressions for the fields that whoever reports the event gives.
 */
export function updateText<E extends DeliveryEvent>(event: E, given: Given<E>): string {
  const change: DeliveryChange = DELIVERY_CHANGES[event];
  const { to, newGeneration, now = [], nowIfEmpty = [], clears = [] } = change;
  const all = [
    ...(to === null ? [] : [`state = '${to}'`]),
    ...(newGeneration ? ['generation = d.generation + 1'] : []),
    ...now.map((field) => `${field} = service_now()`),
    ...nowIfEmpty.map((field) => `${field} = coalesce(d.${field}, service_now())`),
    ...clears.map((field) => `${field} = ${field === 'step' ? '0' : 'null'}`),
    ...Object.entries(given).map((one) => one.join(' = ')),
  ];
  return `update deliveries d set ${all.join(', ')}`;
}

/** The states that an event may happen in, for the condition of such a text. */
export const fromText = (event: DeliveryEvent): string =>
  `d.state in (${DELIVERY_CHANGES[event].from.map((state) => `'${state}'`).join(', ')})`;

/**
 * Why a notification is held, and why a test without an active endpoint fails, in SQL for the partner and environment of `t`: there is
 * none, or why it is disabled. Partners see the first of all of them (api/routes/send-test-notification.ts). open.sql has the same.
 */
export const noEndpointReason = (t: string) => `coalesce(
  (select 'endpoint_' || case when e.disabled_reason in ('gone', 'failing') then e.disabled_reason else 'disabled' end
    from webhook_endpoints e
    where e.partner_id = ${t}.partner_id and e.environment = ${t}.environment and e.state = 'disabled'),
  'webhook_not_registered')`;

/** Dispatchers listen here for what is due, and recoverers for recoveries (`rcv_…`). */
export const NOTIFICATIONS_CHANNEL = 'notifications';

/** API processes listen here for the first attempts of tests, for which a caller waits. */
export const ATTEMPTS_CHANNEL = 'attempts';

/** Something is due now. The claim finds out which: many such hints are one. */
export const SOMETHING_IS_DUE: Hint = { channel: NOTIFICATIONS_CHANNEL, payload: 'due' };

export const recoveryIsWanted = (recoveryId: string): Hint => ({
  channel: NOTIFICATIONS_CHANNEL,
  payload: recoveryId,
});

/** Of a test: an attempt has ended, or all of it has. */
export const testHasMoved = (notificationId: string): Hint => ({
  channel: ATTEMPTS_CHANNEL,
  payload: notificationId,
});

/** Of a test: its first attempt cannot begin for now, as Temporal is away. */
export const testIsDelayed = (notificationId: string): Hint => ({
  channel: ATTEMPTS_CHANNEL,
  payload: `${notificationId}:delayed`,
});

const PREFIX = 'ntf_';

/** When a notification was created, in Unix milliseconds: its id says so, and pages and months go by that. */
export const createdMs = (notificationId: string): number => decodeTime(notificationId.slice(PREFIX.length));

/** The lowest id that a notification created at this moment (Unix milliseconds) or later can have. */
export const lowestNotificationId = (ms: number): string => `${PREFIX}${encodeTime(ms)}${'0'.repeat(16)}`;
