import type { DeliveryEvent, DeliveryState, EndState } from '../../domain/notification-states';
import { changed } from './tools/table';

/** A moment by the clock of the database: milliseconds in a trace, ticks in the search. */
export type Moment = number | null;

/** The row of `deliveries` when it is inserted, by the names of its columns. */
export const NEW_DELIVERY = {
  state: 'queued' as DeliveryState,
  generation: 1,
  attempts: 0,
  step: 0,
  /** Whether it was delivered before, and is sent again. */
  delivered: false,
  /** 1 for a bulk recovery. */
  priority: 0,
  due_at: 0,
  taken_at: null as Moment,
  started_at: null as Moment,
  first_attempt_at: null as Moment,
  next_attempt_at: null as Moment,
  hurried_at: null as Moment,
  ordered_at: null as Moment,
  paused_at: null as Moment,
  held_at: null as Moment,
  checked_at: null as Moment,
  /** Month of the quota in which a test has a unit. */
  reserved_month: null as number | null,
};
export type Delivery = Readonly<typeof NEW_DELIVERY>;

/** The row of `notifications`. `delivered` and `failed`: as what it counts. */
const NEW_NOTIFICATION = {
  end: null as EndState | null,
  generation: 1,
  attempts: 0,
  delivered: false,
  failed: false,
};
export type Notification = Readonly<typeof NEW_NOTIFICATION>;

export type Outcome = 'delivered' | 'failed' | 'gone' | 'ours';

/** A row of `delivery_attempts`. Its outcome is null while it is under way. */
export interface Attempt {
  readonly number: number;
  readonly generation: number;
  readonly began: number;
  /** In which it began, and counts; of a test. */
  readonly month: number | null;
  readonly outcome: Outcome | 'unknown' | null;
}

/** All rows of one event. */
export interface Rows {
  readonly test: boolean;
  readonly n: Notification | null;
  readonly d: Delivery | null;
  readonly attempts: readonly Attempt[];
  /** What `monthly_counts` has of it. */
  readonly counted: { readonly delivered: number; readonly failed: number };
}

/** Before a notification is inserted. */
export const unborn = (test: boolean): Rows => ({
  test,
  n: null,
  d: null,
  attempts: [],
  counted: { delivered: 0, failed: 0 },
});

/** Spans of time, in the unit of `Moment`. */
export interface Terms {
  readonly lease: number;
  /** A later event of an application waits so long for the first attempt of an earlier one. */
  readonly orderWait: number;
  /** A started delivery is compared with Temporal when its last step is so old. */
  readonly checkAfter: number;
  readonly ladder: readonly number[];
}

/** What a transaction sees beside the rows of its event. */
export interface Sight {
  readonly now: number;
  readonly terms: Terms;
  /** There is an active endpoint, and a slot of it is free. */
  readonly endpoint: boolean;
  readonly slotFree: boolean;
  readonly partnerPaused: boolean;
  /** Earlier events of the application. */
  readonly earlier: readonly Rows[];
  readonly month: number;
  /** No test may begin in this month any more. */
  readonly quotaUsed: boolean;
}

/** What a transaction made. */
export interface Done {
  readonly rows: Rows;
  /** Units of the test quota that it takes (1), frees (-1) or turns into a count, by month. */
  readonly units?: readonly {
    readonly month: number;
    readonly reserved: number;
    readonly delivered: number;
  }[];
  /** Later events of its application wait for it, or need to no longer. */
  readonly later?: 'put_off' | 'due_now' | null;
  /** The endpoint has answered 410. */
  readonly gone?: boolean;
}

/** Whether a later event of its application, of this priority, has to wait for this one. */
export const blocks = (
  { d }: Rows,
  priority: number,
  { now, terms }: Pick<Sight, 'now' | 'terms'>,
): boolean =>
  d !== null &&
  d.priority <= priority &&
  !d.delivered &&
  (d.first_attempt_at === null || d.first_attempt_at > now - terms.orderWait);

/** Whether the row has a slot of its endpoint. A lease that has ended takes none. */
export const hasSlot = ({ d }: Rows, now: number): boolean =>
  d !== null && d.taken_at !== null && (d.state === 'started' || d.due_at > now);

/** When a change of the table may be made, beside the state of the row. Some are parts of the transactions below. */
const MAY: Partial<Record<DeliveryEvent, (rows: Rows, d: Delivery, sight: Sight) => boolean>> = {
  take: (_rows, d, sight) =>
    d.due_at <= sight.now &&
    sight.slotFree &&
    !sight.partnerPaused &&
    !sight.earlier.some((one) => blocks(one, d.priority, sight)),
  hold: ({ test }, _d, { endpoint }) => !test && !endpoint,
  release: (_rows, _d, { endpoint }) => endpoint,
  check: (_rows, { checked_at, started_at }, { now, terms }) =>
    (checked_at ?? started_at ?? -Infinity) <= now - terms.checkAfter,
};
const PARTS: readonly DeliveryEvent[] = ['attempt', 'wait', 'park', 'retry', 'put_off'];

/** Such a change, as a transaction of its own; null when it may not be made. */
export function change(
  event: DeliveryEvent,
  rows: Rows,
  sight: Sight,
  given?: Partial<Delivery>,
): Rows | null {
  const { d } = rows;
  if (d === null || PARTS.includes(event) || MAY[event]?.(rows, d, sight) === false) return null;
  const row = changed(event, d, sight.now, given);
  if (row === null) return null;
  return { ...rows, d: row, attempts: event === 'hold' ? closed(rows.attempts) : rows.attempts };
}

/** A later event after such a transaction. @param first when the first attempt of the earlier one began */
export const afterEarlier = (
  later: 'put_off' | 'due_now',
  d: Delivery,
  first: Moment,
  { now, terms }: Sight,
) => changed(later, d, now, later === 'put_off' ? { due_at: (first ?? now) + terms.orderWait } : {});

/** What follows for the workflow of a generation, as its row says. `until` null: until somebody orders it. */
export type Follows = 'over' | 'due' | { readonly until: Moment };

export function follows({ d }: Rows, generation: number, now: number): Follows {
  if (d === null || d.generation !== generation || d.state === 'held') return 'over';
  if (d.hurried_at !== null) return 'due';
  if (d.paused_at !== null) return { until: null };
  return d.next_attempt_at !== null && d.next_attempt_at > now ? { until: d.next_attempt_at } : 'due';
}

/** An attempt that was left unfinished is closed, because its process died. */
const closed = (attempts: readonly Attempt[]): readonly Attempt[] =>
  attempts.map((one) => (one.outcome === null ? { ...one, outcome: 'unknown' } : one));

/** `refused`: there is no endpoint, or no unit of the quota, so it ends or is held next. */
type Opened = Done & {
  readonly kind: 'over' | 'wait' | 'parked' | 'refused' | 'open';
  readonly until?: Moment;
};

/** The transaction of a workflow that asks. */
export function open(rows: Rows, generation: number, sight: Sight): Opened {
  const { now, month } = sight;
  const next = follows(rows, generation, now);
  if (rows.d === null || next === 'over') return { kind: 'over', rows };
  const { attempts: made, reserved_month: reserved, first_attempt_at: first } = rows.d;
  const asked = { ...rows, attempts: closed(rows.attempts) };
  if (next !== 'due') return { kind: 'wait', rows: { ...asked, d: changed('wait', rows.d, now) }, ...next };
  if (sight.partnerPaused) return { kind: 'parked', rows: { ...asked, d: changed('park', rows.d, now) } };
  // The unit of a test moves to the month of the attempt.
  const moves = reserved !== null && reserved !== month;
  if (moves && sight.quotaUsed) return { kind: 'refused', rows };
  if (!sight.endpoint) return { kind: 'refused', rows: asked };
  const attempt: Attempt = {
    number: made + 1,
    generation,
    began: now,
    month: reserved === null ? null : month,
    outcome: null,
  };
  const d = changed('attempt', rows.d, now, {
    attempts: made + 1,
    reserved_month: attempt.month,
    // A delivery whose start was not noted in time has given its slot back, and takes one with its first attempt.
    taken_at: first === null ? (rows.d.taken_at ?? now) : rows.d.taken_at,
  });
  const units = moves ? [unit(reserved, -1), unit(month, 1)] : [];
  return { kind: 'open', rows: { ...rows, d, attempts: [...asked.attempts, attempt] }, units };
}

/** The transaction that records the outcome of an attempt. A second call with the same outcome changes nothing. */
export function record(
  rows: Rows,
  number: number,
  result: Outcome,
  { now, terms }: Sight,
): Done & { readonly follows: Follows } {
  const made = rows.attempts.find((one) => one.number === number);
  const { n, d } = rows;
  if (made === undefined || n === null) throw new Error('an outcome of no attempt');
  const fresh = made.outcome === null;
  const attempts = rows.attempts.map((one) => (one === made && fresh ? { ...one, outcome: result } : one));
  const noted = { ...rows, attempts };
  const current = d !== null && d.generation === made.generation;
  if (result === 'delivered') {
    if (!current && n.delivered) return { rows: noted, follows: 'over' };
    const failed = rows.counted.failed - (n.failed ? 1 : 0);
    const counted = n.delivered ? rows.counted : { delivered: rows.counted.delivered + 1, failed };
    const done = ended({ ...noted, counted }, 'delivered');
    const counts = n.delivered || made.month === null ? [] : [unit(made.month, 0, 1)];
    return { ...done, units: [...counts, ...done.units], follows: 'over' };
  }
  const gone = result === 'gone' && fresh;
  if (!fresh || !current || d.state === 'held')
    return { rows: noted, gone, follows: follows(noted, made.generation, now) };
  const wait = result === 'ours' ? 1 : terms.ladder[d.step + 1];
  if (result === 'gone' || wait === undefined) return { ...ended(noted, 'failed'), gone, follows: 'over' };
  const retried = changed('retry', d, now, {
    next_attempt_at: now + wait,
    step: d.step + (result === 'failed' ? 1 : 0),
    // An order to retry now that was given during the attempt is for the next one.
    hurried_at: d.hurried_at !== null && d.hurried_at > made.began ? d.hurried_at : null,
  });
  const after = { ...noted, d: retried };
  const later = d.step === 0 && !d.delivered ? 'put_off' : null;
  return { rows: after, later, follows: follows(after, made.generation, now) };
}

/** The transaction of an end without an attempt, or of a hold; null when it changes nothing. */
export function end(
  rows: Rows,
  generation: number,
  as: Exclude<EndState, 'delivered'> | 'held',
  now: number,
): Done | null {
  const { d } = rows;
  if (d === null || d.generation !== generation) return null;
  if (as !== 'cancelled' && (as === 'expired') !== (d.state === 'held')) return null;
  const asked = { ...rows, attempts: closed(rows.attempts) };
  return as === 'held' ? { ...freed(d), rows: { ...asked, d: changed('hold', d, now) } } : ended(asked, as);
}

/** The end is written, and the row deleted. A failure counts once, and a delivery takes that back. */
function ended(rows: Rows, as: EndState) {
  const { n, d, counted } = rows;
  if (n === null) throw new Error('an end of no notification');
  const fails = (as === 'failed' || as === 'expired') && !n.delivered && !n.failed;
  const after: Notification = {
    end: as,
    generation: d?.generation ?? n.generation,
    attempts: d?.attempts ?? n.attempts,
    delivered: n.delivered || as === 'delivered',
    failed: as !== 'delivered' && (n.failed || fails),
  };
  const counts = { ...counted, failed: counted.failed + (fails ? 1 : 0) };
  return { ...freed(d), rows: { ...rows, n: after, d: null, counted: counts } };
}

/** What an end or a hold gives back. */
const freed = (d: Delivery | null) => ({
  later: d !== null && (d.step > 0 || d.attempts > 1) ? ('due_now' as const) : null,
  units: d?.reserved_month == null ? [] : [unit(d.reserved_month, -1)],
});

const unit = (month: number, reserved: number, delivered = 0) => ({ month, reserved, delivered });

/**
 * A notification is inserted with its row, which is held from the beginning without an endpoint. Or one that has
 * ended is sent again: its end is cleared, and a row inserted.
 */
export function begun(
  rows: Rows,
  month: number | null,
  due_at: number,
  endpoint: boolean,
  priority = 0,
): Done {
  const n = rows.n && { ...rows.n, end: null, generation: rows.n.generation + 1 };
  const { generation, attempts, delivered } = n ?? NEW_DELIVERY;
  const d = { ...NEW_DELIVERY, generation, attempts, delivered, priority, due_at, reserved_month: month };
  const row: Delivery = endpoint ? d : { ...d, state: 'held', held_at: due_at };
  return {
    rows: { ...rows, n: n ?? NEW_NOTIFICATION, d: row },
    units: month === null ? [] : [unit(month, 1)],
  };
}
