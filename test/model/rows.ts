import { DELIVERY_CHANGES } from '../../domain/notification-states';
import type {
  DeliveryChange,
  DeliveryEvent,
  DeliveryState,
  EndState,
} from '../../domain/notification-states';

/** A moment by the clock of the database: milliseconds in a trace, ticks in the search. */
export type Moment = number | null;

/** The row of `deliveries`, by the names of its columns. */
export interface Delivery {
  readonly state: DeliveryState;
  readonly generation: number;
  readonly attempts: number;
  readonly step: number;
  /** Whether it was delivered before, and is sent again. */
  readonly delivered: boolean;
  readonly due_at: number;
  readonly taken_at: Moment;
  readonly started_at: Moment;
  readonly first_attempt_at: Moment;
  readonly next_attempt_at: Moment;
  readonly hurried_at: Moment;
  readonly ordered_at: Moment;
  readonly paused_at: Moment;
  readonly held_at: Moment;
  readonly checked_at: Moment;
  /** Month of the quota in which a test has a unit. */
  readonly reserved_month: number | null;
}

/** The row of `notifications`. */
export interface Notification {
  readonly end: EndState | null;
  readonly generation: number;
  readonly attempts: number;
  readonly delivered: boolean;
  readonly failed: boolean;
}

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

/** Spans of time and limits, in the unit of `Moment`. */
export interface Terms {
  readonly lease: number;
  /** A later event of an application waits so long for the first attempt of an earlier one. */
  readonly orderWait: number;
  /** A started delivery is compared with Temporal when its last step is so old. */
  readonly checkAfter: number;
  readonly ladder: readonly number[];
  readonly testLadder: readonly number[];
}

/** The row after an event; null when it may not happen in this state. */
export function changed(
  event: DeliveryEvent,
  d: Delivery,
  now: number,
  given: Partial<Delivery> = {},
): Delivery | null {
  const {
    from,
    to,
    newGeneration,
    now: set = [],
    nowIfEmpty = [],
    clears = [],
  }: DeliveryChange = DELIVERY_CHANGES[event];
  if (!from.includes(d.state)) return null;
  const after: Record<string, unknown> = { ...d };
  for (const field of clears) after[field] = field === 'step' ? 0 : null;
  for (const field of nowIfEmpty) after[field] ??= now;
  for (const field of set) after[field] = now;
  const row = after as unknown as Delivery;
  return { ...row, state: to ?? d.state, generation: d.generation + (newGeneration ? 1 : 0), ...given };
}

/** What follows for the workflow of a generation, as its row says. `until` null: until somebody orders it. */
export type Follows = 'over' | 'due' | { readonly until: Moment };

export function follows({ d }: Rows, generation: number, now: number): Follows {
  if (d === null || d.generation !== generation || d.state === 'held') return 'over';
  if (d.hurried_at !== null) return 'due';
  if (d.paused_at !== null) return { until: null };
  return d.next_attempt_at !== null && d.next_attempt_at > now ? { until: d.next_attempt_at } : 'due';
}

/** What a transaction sees beside the rows of its event. */
export interface Sight {
  readonly now: number;
  readonly terms: Terms;
  /** There is an active endpoint. */
  readonly endpoint: boolean;
  readonly partnerPaused: boolean;
}

/** Whether a later event of its application has to wait for this one. */
export const blocks = ({ d }: Rows, { now, terms }: Pick<Sight, 'now' | 'terms'>): boolean =>
  d !== null && !d.delivered && (d.first_attempt_at === null || d.first_attempt_at > now - terms.orderWait);

/** Whether a claim may take it. @param earlier the earlier events of its application */
export const mayTake = ({ d }: Rows, earlier: readonly Rows[], sight: Sight): boolean =>
  d !== null &&
  d.state === 'queued' &&
  d.due_at <= sight.now &&
  !sight.partnerPaused &&
  !earlier.some((one) => blocks(one, sight));

/** Whether the row has a slot of its endpoint. A lease that has ended takes none. */
export const hasSlot = ({ d }: Rows, now: number): boolean =>
  d !== null && d.taken_at !== null && (d.state === 'started' || d.due_at > now);

/** An attempt that was left unfinished is closed, because its process died. */
const closed = (attempts: readonly Attempt[]): readonly Attempt[] =>
  attempts.map((one) => (one.outcome === null ? { ...one, outcome: 'unknown' } : one));

export type Opened =
  | { readonly kind: 'over' | 'refused' | 'parked'; readonly rows: Rows }
  | { readonly kind: 'wait'; readonly rows: Rows; readonly until: Moment }
  | { readonly kind: 'open'; readonly rows: Rows; readonly number: number };

/**
 * The transaction of a workflow that asks. `refused`: there is no endpoint, so it ends, or is held, next.
 * @param month in which a test has its unit for this attempt
 */
export function open(rows: Rows, generation: number, month: number | null, sight: Sight): Opened {
  const { now } = sight;
  const next = follows(rows, generation, now);
  if (rows.d === null || next === 'over') return { kind: 'over', rows };
  const attempts = closed(rows.attempts);
  const became = (d: Delivery | null): Rows => ({ ...rows, attempts, d: d ?? rows.d });
  if (next !== 'due') return { kind: 'wait', until: next.until, rows: became(changed('wait', rows.d, now)) };
  if (sight.partnerPaused) return { kind: 'parked', rows: became(changed('park', rows.d, now)) };
  if (!sight.endpoint) return { kind: 'refused', rows: became(null) };
  const number = rows.d.attempts + 1;
  // A delivery whose start was not noted in time has given its slot back, and takes one with its first attempt.
  const taken_at = rows.d.first_attempt_at === null ? (rows.d.taken_at ?? now) : rows.d.taken_at;
  const d = changed('attempt', rows.d, now, { attempts: number, reserved_month: month, taken_at });
  const attempt: Attempt = { number, generation, began: now, month, outcome: null };
  return { kind: 'open', number, rows: { ...rows, d, attempts: [...attempts, attempt] } };
}

/** The wait that a failure plans at least; null when the ladder is exhausted. */
const plannedWait = (d: Delivery, ladder: readonly number[]): number | null => ladder[d.step + 1] ?? null;

export interface Settled {
  readonly rows: Rows;
  /** Later events of its application wait for it, or need to no longer. */
  readonly later: 'put_off' | 'due_now' | null;
  /** The endpoint has answered 410. */
  readonly gone: boolean;
  /** The month in which a test counts as delivered, and the one in which its unit is free again. */
  readonly counts: number | null;
  readonly frees: number | null;
}

interface Recorded extends Settled {
  readonly follows: Follows;
}

/** The transaction that records the outcome of an attempt. A second call with the same outcome changes nothing. */
export function record(rows: Rows, number: number, result: Outcome, { now, terms }: Sight): Recorded {
  const made = rows.attempts.find((one) => one.number === number);
  const { n, d } = rows;
  if (made === undefined || n === null) throw new Error('an outcome of no attempt');
  const fresh = made.outcome === null;
  const attempts = rows.attempts.map((one) => (one === made && fresh ? { ...one, outcome: result } : one));
  const current = d !== null && d.generation === made.generation;
  const nothing = {
    later: null,
    counts: null,
    frees: null,
    gone: result === 'gone' && (fresh || made.outcome === 'unknown'),
  };
  if (result === 'delivered') {
    if (!current && n.delivered) return { ...nothing, rows: { ...rows, attempts }, follows: 'over' };
    const failed = rows.counted.failed - (n.failed ? 1 : 0);
    const counted = n.delivered ? rows.counted : { delivered: rows.counted.delivered + 1, failed };
    return {
      ...nothing,
      ...ended({ ...rows, attempts, counted }, 'delivered'),
      counts: n.delivered ? null : made.month,
      follows: 'over',
    };
  }
  const answer = (after: Rows): Follows => follows(after, made.generation, now);
  if (!fresh || !current || d.state === 'held') {
    const after = { ...rows, attempts };
    return { ...nothing, rows: after, follows: answer(after) };
  }
  const wait = result === 'ours' ? 1 : plannedWait(d, rows.test ? terms.testLadder : terms.ladder);
  if (result === 'gone' || wait === null)
    return { ...nothing, ...ended({ ...rows, attempts }, 'failed'), follows: 'over' };
  const step = d.step + (result === 'failed' ? 1 : 0);
  // An order to retry now that was given during the attempt is for the next one.
  const hurried_at = d.hurried_at !== null && d.hurried_at > made.began ? d.hurried_at : null;
  const after = {
    ...rows,
    attempts,
    d: changed('retry', d, now, { next_attempt_at: now + wait, step, hurried_at }),
  };
  return {
    ...nothing,
    rows: after,
    follows: answer(after),
    later: d.step === 0 && !d.delivered ? 'put_off' : null,
  };
}

/** The transaction of an end without an attempt, or of a hold; null when it changes nothing. */
export function end(
  rows: Rows,
  generation: number,
  as: 'failed' | 'cancelled' | 'expired' | 'held',
  now: number,
): Settled | null {
  const { d } = rows;
  if (d === null || d.generation !== generation) return null;
  if (as !== 'cancelled' && (as === 'expired') !== (d.state === 'held')) return null;
  const after = { ...rows, attempts: closed(rows.attempts) };
  const settled =
    as === 'held' ? { ...freed(d), rows: { ...after, d: changed('hold', d, now) } } : ended(after, as);
  return { ...settled, gone: false, counts: null };
}

const freed = (d: Delivery | null) =>
  ({
    later: d !== null && (d.step > 0 || d.attempts > 1) ? 'due_now' : null,
    frees: d?.reserved_month ?? null,
  }) as const;

/** The end is written, and the row deleted. A failure counts once, and a delivery takes that back. */
function ended(rows: Rows, as: EndState): Pick<Settled, 'rows' | 'later' | 'frees'> {
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
  return {
    ...freed(d),
    rows: { ...rows, n: after, d: null, counted: { ...counted, failed: counted.failed + (fails ? 1 : 0) } },
  };
}

/** A notification is inserted with its row, which is held from the beginning without an endpoint. */
export const created = (rows: Rows, now: number, month: number | null, endpoint: boolean): Rows => {
  const d = begun(1, 0, false, now, month);
  const n = { end: null, generation: 1, attempts: 0, delivered: false, failed: false };
  return { ...rows, n, d: endpoint ? d : { ...d, state: 'held', held_at: now } };
};

/** One that has ended is sent again: its end is cleared, and a row inserted. */
export const resent = (rows: Rows, now: number, month: number | null): Rows => {
  const { n } = rows;
  if (n === null) throw new Error('a resend of no notification');
  return { ...rows, n: { ...n, end: null }, d: begun(n.generation + 1, n.attempts, n.delivered, now, month) };
};

const begun = (
  generation: number,
  attempts: number,
  delivered: boolean,
  due_at: number,
  month: number | null,
): Delivery => ({
  state: 'queued',
  generation,
  attempts,
  step: 0,
  delivered,
  due_at,
  taken_at: null,
  started_at: null,
  first_attempt_at: null,
  next_attempt_at: null,
  hurried_at: null,
  ordered_at: null,
  paused_at: null,
  held_at: null,
  checked_at: null,
  reserved_month: month,
});
