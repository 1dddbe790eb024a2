import { decodeTime, encodeTime } from 'ulid';
import { DELIVERY_CHANGES } from '../../domain/notification-states';
import type { DeliveryChange, DeliveryEvent, NotificationState } from '../../domain/notification-states';
import type { Tenant } from '../../domain/tenant';
import { columns, firstRow, msText, runPrepared, type Reader } from '../postgres/connect';
import type { Hint } from '../postgres/hints';
import type { notifications } from '../schema';

export interface NotificationRef {
  readonly notificationId: string;
  readonly generation: number;
}

type Stored = Readonly<typeof notifications.$inferSelect>;
type Told = 'eventId' | 'eventType' | 'applicationId' | 'sequence' | 'endReason' | 'attempts';

export interface Notification extends NotificationRef, Tenant, Pick<Stored, Told> {
  readonly state: NotificationState;
  readonly deliveredMs: number | null;
  readonly hasBody: boolean;
}

const NAMES = `notification_id, generation, partner_id, environment, event_id, event_type, application_id, sequence, state, end_reason,
  attempts`;
export const NOTIFICATION = `${columns('n', NAMES)}, ${msText('n.delivered_at')} as "deliveredMs", n.body <> '' as "hasBody"`;

// Whatever locks both rows locks the notification before its row in deliveries.
const LOCK = `select 1 from notifications where notification_id = $1 and ($2::text is null or (partner_id, environment) = ($2, $3))
  for update`;
const LOCK_DELIVERY = `select 1 from deliveries where notification_id = $1 for update`;
const READ = `select ${NOTIFICATION} from notifications_now n where n.notification_id = $1`;

/**
 * Reads a notification and locks it until the transaction ends.
 * @param owner notifications of others are neither found nor waited for; absent: any
 */
export async function lockNotification(tx: Reader, notificationId: string, owner?: Tenant) {
  const whose = [notificationId, owner?.partnerId ?? null, owner?.environment ?? null];
  if ((await runPrepared(tx, LOCK, whose)).length === 0) return null;
  await runPrepared(tx, LOCK_DELIVERY, [notificationId]);
  return firstRow<Notification>(tx, READ, [notificationId]);
}

const TRACE = `select ${columns('n', 'request_id, trace_parent')} from notifications n where n.notification_id = $1`;

export const readTrace = (reader: Reader, notificationId: string) =>
  firstRow<Readonly<Record<'requestId' | 'traceParent', string | null>>>(reader, TRACE, [notificationId]);

export interface NotificationProgress extends Pick<Notification, 'state' | 'endReason'> {
  /** Deliveries to its partner are paused, so that no attempt begins. */
  readonly paused: boolean;
  readonly attempt: {
    readonly httpStatus: number | null;
    readonly failure: string | null;
    readonly durationMs: number;
  } | null;
}

const PROGRESS = `
  select n.state, n.end_reason as "endReason", deliveries_paused_1(n.partner_id, n.environment) as paused,
    case when a.duration_ms is not null
      then json_build_object('httpStatus', a.http_status, 'failure', a.failure, 'durationMs', a.duration_ms) end as attempt
  from notifications_now n
  left join delivery_attempts a on a.notification_id = $1 and a.duration_ms is not null and a.outcome <> 'ours'
  where n.notification_id = $1
  order by a.attempt_number desc nulls last limit 1`;

export const readProgress = (reader: Reader, notificationId: string) =>
  firstRow<NotificationProgress>(reader, PROGRESS, [notificationId]);

type Given<E extends DeliveryEvent> = (typeof DELIVERY_CHANGES)[E] extends {
  readonly given: readonly (infer Field extends string)[];
}
  ? Readonly<Record<Field, string>>
  : Readonly<Record<string, never>>;

/**
 * The constant text `update deliveries d set …` for an event of domain/notification-states.ts. Only
 * claim.sql, open.sql and record.sql change rows without it.
 * @param given expressions for the fields that the table leaves to the caller
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

/**
 * The condition of such a text: the states in which the event may happen. No index has it: planned when the table is empty,
 * a row would be looked for among all of its state.
 */
export const fromText = (event: DeliveryEvent): string =>
  `array_position(array[${DELIVERY_CHANGES[event].from.map((state) => `'${state}'`).join(', ')}], d.state) is not null`;

/** Dispatchers listen here for due notifications, and recoverers for recoveries (`rcv_…`). */
export const NOTIFICATIONS_CHANNEL = 'notifications';

/** API processes listen here for the first attempts of tests that a caller waits for. */
export const ATTEMPTS_CHANNEL = 'attempts';

/** The queue of a partner and environment, which has one endpoint. Partner ids contain no slash. */
export const queueName = ({ partnerId, environment }: Tenant): string => `${partnerId}/${environment}`;

export function tenantOf(queue: string): Tenant {
  const [partnerId = '', environment = ''] = queue.split('/');
  return { partnerId, environment: environment as Tenant['environment'] };
}

/** Something is due now in this queue; the worker that the queue belongs to claims it. Equal hints are sent once. */
export const isDue = (of: Tenant): Hint => ({ channel: NOTIFICATIONS_CHANNEL, payload: queueName(of) });
/** The same where the queue is not known: every worker looks. */
export const SOMETHING_IS_DUE: Hint = { channel: NOTIFICATIONS_CHANNEL, payload: 'due' };
export const recoveryIsWanted = (id: string): Hint => ({ channel: NOTIFICATIONS_CHANNEL, payload: id });
export const testHasMoved = (id: string): Hint => ({ channel: ATTEMPTS_CHANNEL, payload: id });
export const testIsDelayed = (id: string): Hint => ({ channel: ATTEMPTS_CHANNEL, payload: `${id}:delayed` });

const PREFIX = 'ntf_';

/** When a notification was created, in Unix milliseconds, as its id says. */
export const createdMs = (notificationId: string): number => decodeTime(notificationId.slice(PREFIX.length));

/** The lowest id of notifications created at this moment (Unix milliseconds) or later. */
export const lowestNotificationId = (ms: number): string => `${PREFIX}${encodeTime(ms)}${'0'.repeat(16)}`;
