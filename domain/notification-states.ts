/** States of a notification under way, which has a row in `deliveries`. */
export const DELIVERY_STATES = ['queued', 'started', 'held'] as const;
/** How a notification ended. It then has no such row, until it is sent again. */
export const END_STATES = ['delivered', 'failed', 'cancelled', 'expired'] as const;
/** A notification has either a row in `deliveries` or an end. */
export const NOTIFICATION_STATES = [...DELIVERY_STATES, ...END_STATES] as const;

export type DeliveryState = (typeof DELIVERY_STATES)[number];
export type EndState = (typeof END_STATES)[number];
export type NotificationState = (typeof NOTIFICATION_STATES)[number];

const OPEN = ['queued', 'started'] as const;

export const isOpen = (state: NotificationState): state is (typeof OPEN)[number] =>
  state === 'queued' || state === 'started';

type Moment =
  | 'due'
  | 'taken'
  | 'started'
  | 'first_attempt'
  | 'next_attempt'
  | 'hurried'
  | 'ordered'
  | 'paused'
  | 'held'
  | 'checked';
type DeliveryField =
  | `${Moment}_at`
  | 'paused_by'
  | 'hold_reason'
  | 'step'
  | 'ladder_ms'
  | 'waits_for'
  | 'attempts'
  | 'priority'
  | 'reserved_month';

export interface DeliveryChange {
  readonly from: readonly DeliveryState[];
  readonly to: DeliveryState | null;
  /** Another workflow begins. Reports of the earlier one no longer count, but for a delivery. */
  readonly newGeneration?: true;
  readonly now?: readonly `${Moment}_at`[];
  readonly nowIfEmpty?: readonly `${Moment}_at`[];
  /** Set to null, `step` to 0. */
  readonly clears?: readonly DeliveryField[];
  readonly given?: readonly DeliveryField[];
}

/**
 * Every event in the life of a notification that stays under way. notification.ts makes SQL of it;
 * claim.sql, open.sql and record.sql apply `take`, `attempt`, `wait`, `retry`, `park`, `put_off`,
 * `due_now` and `hold` themselves. A test compares each of them with this table.
 */
export const DELIVERY_CHANGES = {
  /** A dispatcher has claimed it. It has a slot of its endpoint until the first attempt has ended. */
  take: { from: ['queued'], to: null, given: ['taken_at', 'due_at'] },
  /** Its workflow could not be started. */
  give_back: { from: ['queued'], to: null, now: ['checked_at'], clears: ['taken_at'], given: ['due_at'] },
  start: { from: ['queued'], to: 'started', now: ['checked_at'], nowIfEmpty: ['started_at'] },
  /** Its workflow has asked, and no attempt is due: the next one is planned for later, or it is paused. */
  wait: {
    from: OPEN,
    to: 'started',
    now: ['checked_at'],
    nowIfEmpty: ['started_at'],
    clears: ['taken_at', 'ordered_at'],
  },
  /** An attempt's row is written, before the send. */
  attempt: {
    from: OPEN,
    to: 'started',
    now: ['checked_at'],
    nowIfEmpty: ['started_at', 'first_attempt_at'],
    clears: ['ordered_at'],
    given: ['attempts', 'reserved_month', 'taken_at', 'ladder_ms'],
  },
  /** An attempt could not be signed, so that there was none. */
  forget_attempt: { from: OPEN, to: null, given: ['attempts', 'first_attempt_at'] },
  /** An attempt has failed, and another one will follow. */
  retry: {
    from: OPEN,
    to: null,
    clears: ['taken_at', 'ordered_at'],
    given: ['next_attempt_at', 'step', 'waits_for', 'hurried_at'],
  },
  /** The orders of operators. Its workflow is woken after the commit, and reads the row. */
  pause: {
    from: ['started'],
    to: null,
    now: ['ordered_at'],
    nowIfEmpty: ['paused_at'],
    given: ['paused_by'],
  },
  resume: { from: OPEN, to: null, now: ['ordered_at'], clears: ['paused_at', 'paused_by'] },
  retry_now: { from: ['started'], to: null, now: ['ordered_at', 'hurried_at'] },
  /** An earlier event of its application has failed once, and this one waits for it for a minute. */
  put_off: { from: ['queued'], to: null, given: ['due_at'] },
  /** An earlier event of its application has ended. */
  due_now: { from: ['queued'], to: null, now: ['due_at'] },
  check: { from: ['started'], to: null, now: ['checked_at'] },
  /** Its workflow is gone, or ended without an outcome. Its plan is kept, and another is started at once. */
  restart: {
    from: ['started'],
    to: null,
    newGeneration: true,
    now: ['started_at'],
    clears: ['taken_at', 'checked_at'],
  },
  /** Deliveries to its partner are paused. Its workflow ends without an attempt. Its plan is kept. */
  park: {
    from: OPEN,
    to: 'queued',
    newGeneration: true,
    now: ['due_at'],
    clears: ['taken_at', 'started_at', 'checked_at', 'ordered_at'],
  },
  /** It found no slot for long. Its workflow ends without an attempt. Its plan is kept; it is claimed again when due. */
  requeue: {
    from: OPEN,
    to: 'queued',
    newGeneration: true,
    clears: ['taken_at', 'started_at', 'checked_at', 'ordered_at'],
    given: ['due_at'],
  },
  hold: {
    from: OPEN,
    to: 'held',
    now: ['held_at'],
    clears: [
      'taken_at',
      'next_attempt_at',
      'paused_at',
      'paused_by',
      'hurried_at',
      'ordered_at',
      'reserved_month',
    ],
    given: ['hold_reason'],
  },
  /** There is an active endpoint again, or it is resent. Its ladder begins again. */
  release: {
    from: ['held'],
    to: 'queued',
    newGeneration: true,
    clears: ['held_at', 'hold_reason', 'started_at', 'first_attempt_at', 'checked_at', 'step'],
    given: ['due_at', 'priority'],
  },
} as const satisfies Record<string, DeliveryChange>;

export type DeliveryEvent = keyof typeof DELIVERY_CHANGES;

interface End {
  readonly from: readonly NotificationState[];
  readonly end: EndState;
  /** Counts as failed in the present month, once, unless it was delivered before. */
  readonly countsAsFailed?: true;
}

export const ENDS = {
  // This is also reported late, for an attempt of an earlier generation. It counts once.
  delivered: { from: NOTIFICATION_STATES, end: 'delivered' },
  failed: { from: OPEN, end: 'failed', countsAsFailed: true },
  cancelled: { from: DELIVERY_STATES, end: 'cancelled' },
  expired: { from: ['held'], end: 'expired', countsAsFailed: true },
} as const satisfies Record<EndState, End>;

/**
 * What partners see of a notification's state: `pending` until an attempt of its generation has failed,
 * then `retrying` until it ends. What was delivered once and is not under way again stays `delivered`.
 * db/schema/notifications.ts has it in SQL.
 */
export const NOTIFICATION_STATUSES = [
  'pending',
  'retrying',
  'delivered',
  'failed',
  'held',
  'cancelled',
  'expired',
] as const;

export type NotificationStatus = (typeof NOTIFICATION_STATUSES)[number];

/** Event type of a test, which has no application, counts against the quota and is never held. */
export const TEST_EVENT_TYPE = 'credit_application.test';

/** A ULID, for regular expressions of JavaScript and Postgres. The first digit has three bits. */
export const ULID_PATTERN = '[0-7][0-9A-HJKMNP-TV-Z]{25}';

/** Keywords on every delivery workflow, by which Temporal's page and `ops` filter. */
export const SEARCH_ATTRIBUTE = {
  partner: 'PartnerId',
  environment: 'Environment',
  eventType: 'EventType',
  application: 'ApplicationId',
  status: 'NotificationStatus',
} as const;

export const SEARCH_ATTRIBUTES = Object.values(SEARCH_ATTRIBUTE);
