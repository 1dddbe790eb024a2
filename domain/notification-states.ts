/** States of a notification. `pending` and `started` are open, `held` waits for an endpoint, the others are ends. */
export const NOTIFICATION_STATES = [
  'pending',
  'started',
  'held',
  'delivered',
  'failed',
  'cancelled',
  'expired',
] as const;

export type NotificationState = (typeof NOTIFICATION_STATES)[number];

/** A workflow delivers it, or will: no outcome yet. */
export const OPEN_STATES = ['pending', 'started'] as const;
/** Nothing more happens to it unless it is sent again. */
export const END_STATES = ['delivered', 'failed', 'cancelled', 'expired'] as const;

export function isOpen(state: NotificationState): state is (typeof OPEN_STATES)[number] {
  return (OPEN_STATES as readonly NotificationState[]).includes(state);
}

/** What a notification's row says of its course; each is a column (db/schema/notifications.ts). */
type NotificationField =
  | 'due_at'
  | 'taken_at'
  | 'started_at'
  | 'first_attempt_at'
  | 'checked_at'
  | 'next_attempt_at'
  | 'paused_at'
  | 'delivered_at'
  | 'ended_at'
  | 'held_at'
  | 'end_reason'
  | 'reserved_month'
  | 'failed_month'
  | 'priority'
  | 'attempts'
  | 'recovery_id';

/** What happens to a notification. */
export type NotificationEvent =
  /** Its workflow exists. */
  | 'start'
  /** An attempt's row is written, before the send. */
  | 'attempt'
  /** The first attempt of a generation failed, and another one will follow. */
  | 'retry'
  /** A later one failed, and another one will follow. */
  | 'retry_again'
  | 'pause'
  | 'resume'
  | 'deliver'
  /** Delivered once more, after a resend: it stays counted once. */
  | 'deliver_again'
  | 'fail'
  | 'cancel'
  /** There is no active endpoint for it. */
  | 'hold'
  | 'expire'
  /** There is an active endpoint again. */
  | 'release'
  /** Its workflow is gone, or ended without recording an outcome. */
  | 'restart'
  | 'resend'
  | 'give_back'
  /** Temporal is asked after its workflow. */
  | 'check'
  /** An attempt could not be signed: nothing was sent, so there was none. */
  | 'forget_attempt'
  /** An earlier event of its application has failed once: this one may wait for it for a minute. */
  | 'put_off'
  /** An earlier event of its application has ended. */
  | 'due_now';

/** What an event does to a notification's row, and what has to follow in the same transaction. */
export interface Transition {
  readonly from: readonly NotificationState[];
  /** Null: the state stays as it is. */
  readonly to: NotificationState | null;
  /** A new workflow begins; the one before has no say any more. */
  readonly newGeneration?: true;
  readonly now?: readonly NotificationField[];
  /** Set to the current time unless they have a value. */
  readonly nowIfEmpty?: readonly NotificationField[];
  readonly clears?: readonly NotificationField[];
  /** Given by whoever reports the event. */
  readonly given?: readonly NotificationField[];
  /** An attempt that is not finished is closed as `unknown`: nobody will report its outcome. */
  readonly closesAttempt?: true;
  /** A test's unit of the monthly quota is given back. */
  readonly releasesQuota?: true;
  /** Later events of the same application: put off until a minute after the first attempt, or due at once. */
  readonly laterEvents?: 'put_off' | 'due_now';
}

/** What only a notification that is under way has. */
const OPEN_ONLY = ['taken_at', 'reserved_month', 'next_attempt_at', 'paused_at'] as const;

/** A new generation begins as if there had been none before, with the attempts it has. */
const BEGINS_ANEW = {
  to: 'pending',
  newGeneration: true,
  clears: [
    'end_reason',
    'ended_at',
    'held_at',
    'taken_at',
    'started_at',
    'first_attempt_at',
    'checked_at',
    'next_attempt_at',
    'paused_at',
  ],
} as const;

/**
 * Every event of a notification's life: where it may happen, what it sets and clears, and what it owes to others. The only
 * place that decides this; db/notifications/update.ts turns it into SQL.
 */
export const NOTIFICATION_TRANSITIONS = {
  start: { from: OPEN_STATES, to: 'started', now: ['checked_at'], nowIfEmpty: ['started_at'] },
  attempt: {
    from: OPEN_STATES,
    to: 'started',
    now: ['checked_at'],
    nowIfEmpty: ['started_at', 'first_attempt_at'],
    given: ['attempts', 'reserved_month', 'taken_at'],
    closesAttempt: true,
  },
  retry: {
    from: OPEN_STATES,
    to: null,
    clears: ['taken_at'],
    given: ['next_attempt_at'],
    laterEvents: 'put_off',
  },
  retry_again: { from: OPEN_STATES, to: null, given: ['next_attempt_at'] },
  pause: { from: OPEN_STATES, to: null, nowIfEmpty: ['paused_at'] },
  resume: { from: OPEN_STATES, to: null, clears: ['paused_at'] },
  deliver: {
    // Also when an attempt of an earlier generation is heard of late: a delivery is a delivery.
    from: NOTIFICATION_STATES,
    to: 'delivered',
    now: ['delivered_at', 'ended_at'],
    clears: ['end_reason', 'held_at', ...OPEN_ONLY, 'failed_month'],
    releasesQuota: true,
    laterEvents: 'due_now',
  },
  deliver_again: {
    from: OPEN_STATES,
    to: 'delivered',
    now: ['ended_at'],
    clears: ['end_reason', ...OPEN_ONLY],
    laterEvents: 'due_now',
  },
  fail: {
    from: OPEN_STATES,
    to: 'failed',
    now: ['ended_at'],
    clears: OPEN_ONLY,
    given: ['end_reason', 'failed_month'],
    closesAttempt: true,
    releasesQuota: true,
    laterEvents: 'due_now',
  },
  cancel: {
    from: ['pending', 'started', 'held'],
    to: 'cancelled',
    now: ['ended_at'],
    clears: [...OPEN_ONLY, 'held_at'],
    given: ['end_reason'],
    closesAttempt: true,
    releasesQuota: true,
    laterEvents: 'due_now',
  },
  hold: {
    from: OPEN_STATES,
    to: 'held',
    now: ['held_at'],
    clears: OPEN_ONLY,
    given: ['end_reason'],
    closesAttempt: true,
    releasesQuota: true,
    laterEvents: 'due_now',
  },
  expire: {
    from: ['held'],
    to: 'expired',
    now: ['ended_at'],
    clears: ['held_at'],
    given: ['end_reason', 'failed_month'],
    closesAttempt: true,
    releasesQuota: true,
  },
  release: { from: ['held'], ...BEGINS_ANEW, given: ['due_at'] },
  restart: { from: ['started'], ...BEGINS_ANEW, now: ['due_at'] },
  resend: {
    from: ['held', ...END_STATES],
    ...BEGINS_ANEW,
    now: ['due_at'],
    given: ['priority', 'reserved_month', 'recovery_id'],
  },
  give_back: { from: ['pending'], to: null, now: ['checked_at'], clears: ['taken_at'], given: ['due_at'] },
  check: { from: ['started'], to: null, now: ['checked_at'] },
  forget_attempt: { from: OPEN_STATES, to: null, given: ['attempts', 'first_attempt_at'] },
  put_off: { from: ['pending'], to: null, given: ['due_at'] },
  due_now: { from: ['pending'], to: null, now: ['due_at'] },
} as const satisfies Record<NotificationEvent, Transition>;

/** Whether an event may happen to a notification in this state. */
export function mayHappen(event: NotificationEvent, state: NotificationState): boolean {
  return (NOTIFICATION_TRANSITIONS[event].from as readonly NotificationState[]).includes(state);
}
