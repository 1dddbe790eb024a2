import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from '../../db/postgres/connect';
import { DELIVERY_CHANGES, TEST_EVENT_TYPE, type DeliveryEvent } from '../../domain/notification-states';
import { ALWAYS } from './invariants';
import { changed, created, end, hasSlot, mayTake, open, record, resent } from './rows';
import type { Attempt, Delivery, Notification, Outcome, Rows, Sight, Terms } from './rows';

type Sql = Database['sql'];
type Stored = Readonly<Record<string, unknown>>;

/** A change of one row, as keep-changes.sql keeps it. */
export interface Line {
  readonly tx: string;
  readonly moment: number;
  /** Who changed it: a process, or the test itself, which may put rows into any state. */
  readonly login?: string;
  readonly about: 'delivery' | 'notification' | 'attempt' | 'count' | 'pause' | 'endpoint';
  readonly was: Stored | null;
  readonly now: Stored | null;
}

export interface Verdict {
  readonly deliveries: number;
  readonly transitions: number;
  /** How often each step was taken. */
  readonly steps: Readonly<Record<string, number>>;
  /** The first transition that the model does not have, and the state that it was in; null when it accepts all. */
  readonly refused: {
    readonly notification: string;
    readonly why: string;
    readonly state: Rows;
    readonly before: readonly string[];
  } | null;
}

/** From now on the changes are kept. Call it as the owner of the schema. */
export const keepChanges = (sql: Sql) =>
  sql.unsafe(readFileSync(join(__dirname, 'keep-changes.sql'), 'utf8'));

/** What was kept, in the order of its changes. */
export const keptChanges = async (sql: Sql): Promise<readonly Line[]> =>
  sql<Line[]>`select * from model_changes order by id`;

export type Ladders = Partial<Pick<Terms, 'ladder' | 'testLadder'>>;

const TERMS: Terms = { lease: 10_000, orderWait: 60_000, checkAfter: 0, ladder: [], testLadder: [] };
/** Logins of the service's own processes. */
const PROCESS = /^quotes_/;
const SLOTS = 16;
/** Two sessions may not have seen each other's change of an endpoint, a pause, or an event that is sent again, for so long. */
const UNSURE_MS = 5_000;
/** Between moments that one statement sets. */
const CLOSE_MS = 1_000;

class Refusal extends Error {}

const isPrepared = ({ login }: Line) => login !== undefined && !PROCESS.test(login);

interface Known extends Rows {
  readonly queue: string;
  readonly application: string | null;
  readonly sequence: number;
  readonly steps: readonly string[];
  /** When it was stored, sent again or released last. */
  readonly begunAt: number;
}

/** A partner and environment: an endpoint, a pause, and when they changed last. */
interface Queue {
  endpoint: boolean;
  endpointAt: number;
  paused: boolean;
  pausedAt: number;
  /**
   * Its slots in use, and from when on every claim has seen each. Claims of a queue take turns; a workflow that starts
   * after its lease ended, or was given back, takes a slot without a turn.
   */
  readonly taken: Map<string, number>;
}

/**
 * Holds lines against the model, transaction by transaction, up to the first that it refuses.
 * @param ladders those of the workers, in milliseconds, for rows without one
 */
export function check(lines: readonly Line[], ladders: Ladders = {}): Verdict {
  const terms = { ...TERMS, ...ladders };
  const known = new Map<string, Known>();
  const applications = new Map<string, string[]>();
  const queues = new Map<string, Queue>();
  const steps: Record<string, number> = {};
  let transitions = 0;

  function queueOf(row: Stored): Queue {
    const key = queueName(row);
    const queue = queues.get(key) ?? {
      endpoint: false,
      endpointAt: 0,
      paused: false,
      pausedAt: 0,
      taken: new Map(),
    };
    queues.set(key, queue);
    return queue;
  }

  function place(id: string, next: Known, queue: Queue, moment: number): void {
    const { application } = next;
    const before = known.get(id)?.d;
    if (application !== null && !known.has(id))
      applications.set(application, [...(applications.get(application) ?? []), id]);
    if (next.d?.taken_at == null) queue.taken.delete(id);
    else if (next.d.state === 'queued') queue.taken.set(id, 0);
    else if (before == null || !hasSlot({ ...next, d: before }, moment + UNSURE_MS))
      queue.taken.set(id, moment + UNSURE_MS);
    known.set(id, next);
  }

  function explain(id: string, own: readonly Line[], owe: (what: string, units: number) => void): void {
    const inserted = own.find(({ about, was }) => about === 'notification' && was === null)?.now;
    const before = known.get(id) ?? (inserted ? unborn(inserted) : null);
    // One that was there before the changes were kept.
    if (before === null) return;
    const queue = queueOf(
      own[0]?.now?.['partner_id'] === undefined && inserted === undefined
        ? rowOf(before)
        : (inserted ?? rowOf(before)),
    );
    const moment = own.at(-1)?.moment ?? 0;
    const earlier = (applications.get(before.application ?? '') ?? [])
      .flatMap((one) => known.get(one) ?? [])
      .filter(
        (one) =>
          one.sequence < before.sequence && (one.begunAt < moment - UNSURE_MS || one.n?.generation === 1),
      );
    const after = afterOf(before, own);
    const endpoints =
      moment - queue.endpointAt < UNSURE_MS ? [queue.endpoint, !queue.endpoint] : [queue.endpoint];
    const answers = endpoints.map((endpoint) => {
      const sight: Sight = {
        now: moment,
        terms: termsOf(own, after, terms),
        endpoint,
        partnerPaused: queue.paused,
      };
      const free =
        [...queue.taken].filter(
          ([one, seenFrom]) => one !== id && seenFrom <= moment && hasSlot(known.get(one) ?? before, moment),
        ).length < SLOTS;
      return explained(before, after, own, {
        sight,
        earlier,
        free,
        pauseUnsure: moment - queue.pausedAt < UNSURE_MS,
      });
    });
    const [first] = answers;
    const step = answers.find((one) => typeof one !== 'string');
    if (own.every(isPrepared) && (step === undefined || typeof step === 'string')) {
      const counted = {
        delivered: Number(after.n?.delivered),
        failed: Number(after.n?.failed && !after.n.delivered),
      };
      return place(id, { ...before, ...after, counted }, queue, moment);
    }
    if (step === undefined || typeof step === 'string')
      throw new Refusal(typeof first === 'string' ? first : 'is not known');
    if (step.name === null) return;
    const { counted } = step;
    const next: Known = {
      ...before,
      ...after,
      counted,
      steps: [...before.steps.slice(-9), step.name],
      begunAt: ['store', 'resend', 'release'].includes(step.name) ? moment : before.begunAt,
    };
    for (const [name, breaks] of ALWAYS)
      if (breaks(next, before)) throw new Refusal(`${step.name}: ${name} is broken`);
    place(id, next, queue, moment);
    steps[step.name] = (steps[step.name] ?? 0) + 1;
    transitions += 1;
    const unit = ({ d }: Rows) => (d?.reserved_month == null ? 0 : 1);
    const of = `${before.queue} ${before.test}`;
    owe(`${of} delivered`, before.counted.delivered - counted.delivered);
    owe(`${of} failed`, before.counted.failed - counted.failed);
    owe(`${of} reserved`, unit(before) - unit(next));
  }

  for (const transaction of transactionsOf(lines)) {
    const owed = new Map<string, number>();
    const owe = (what: string, units: number) => void owed.set(what, (owed.get(what) ?? 0) + units);
    for (const { about, was, now, moment } of transaction) {
      const row = now ?? was ?? {};
      if (about === 'endpoint' && (now?.['state'] === 'active') !== (was?.['state'] === 'active'))
        Object.assign(queueOf(row), { endpoint: now?.['state'] === 'active', endpointAt: moment });
      if (about === 'pause')
        Object.assign(queueOf(row), { paused: now !== null && now['resumed_at'] === null, pausedAt: moment });
      if (about === 'count')
        for (const kind of ['delivered', 'failed', 'reserved'])
          owe(
            `${queueName(row)} ${row['event_type'] === TEST_EVENT_TYPE} ${kind}`,
            Number(now?.[kind] ?? 0) - Number(was?.[kind] ?? 0),
          );
    }
    let id = '';
    try {
      let own: readonly Line[];
      for ([id, own] of byNotification(transaction)) explain(id, own, owe);
      const wrong = [...owed].find(([, units]) => units !== 0);
      if (wrong !== undefined && id !== '' && !transaction.every(isPrepared))
        throw new Refusal(`the count of "${wrong[0]}" changes by ${wrong[1]} more than the rows say`);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { steps: before = [], ...state } = known.get(id) ?? {};
      return {
        deliveries: known.size,
        transitions,
        steps,
        refused: { notification: id, why: error.message, state: state as Rows, before },
      };
    }
  }
  return { deliveries: known.size, transitions, steps, refused: null };
}

interface Around {
  readonly sight: Sight;
  readonly earlier: readonly Rows[];
  readonly free: boolean;
  readonly pauseUnsure: boolean;
}

/** The step of the model that leads from one state to the other, or why none does. A name of null: nothing that the model knows has changed. */
function explained(
  before: Known,
  after: Rows,
  own: readonly Line[],
  around: Around,
): { name: string | null; counted: Rows['counted'] } | string {
  const { sight } = around;
  const attempts = own.filter(({ about }) => about === 'attempt');
  const begun = attempts.find(({ was }) => was === null)?.now;
  const finished = attempts.find(
    ({ was, now }) =>
      was?.['outcome'] === null && now !== null && !['unknown', null].includes(now['outcome'] as string),
  )?.now;
  const is = (name: string, rows: Rows, more: readonly string[] = []) => {
    const difference = differs(rows, after);
    return difference === null
      ? { name, counted: rows.counted }
      : `${name}: ${[...more, difference].join('; ')}`;
  };
  const { n, d } = before;
  if (n === null)
    return is(
      'store',
      created(before, after.d?.due_at ?? 0, after.d?.reserved_month ?? null, sight.endpoint),
    );
  if (begun) {
    const now = time(begun['started_at']) ?? 0;
    const month = d?.reserved_month == null ? null : monthOf(now);
    const opened = open(before, Number(begun['generation']), month, { ...sight, now });
    return opened.kind === 'open'
      ? is('attempt', opened.rows)
      : `an attempt begins, where the answer is "${opened.kind}"`;
  }
  if (finished) {
    const now = time(finished['finished_at']) ?? 0;
    const { number, outcome } = attemptOf(finished);
    return is(`record ${outcome}`, record(before, number, outcome as Outcome, { ...sight, now }).rows);
  }
  const ended = after.n?.end ?? null;
  if (ended === 'delivered' && !(n.end === 'delivered' && d === null)) {
    const late = before.attempts.find(({ outcome }) => outcome === 'unknown');
    return late
      ? is('record delivered late', record(before, late.number, 'delivered', sight).rows)
      : 'it is delivered without an attempt';
  }
  if (ended !== null && n.end === null) {
    const result = end(before, d?.generation ?? 0, ended as 'failed', sight.now);
    return result === null ? `it may not end as ${ended}` : is(`end ${ended}`, result.rows);
  }
  if (ended === null && n.end !== null)
    return is('resend', resent(before, after.d?.due_at ?? 0, after.d?.reserved_month ?? null));
  if (differs(before, after) === null) return { name: null, counted: before.counted };
  if (d === null || after.d === null) return 'a row goes or comes without an end or a beginning';
  const why: string[] = [];
  for (const name of Object.keys(DELIVERY_CHANGES) as DeliveryEvent[]) {
    const refused = mayNot(name, before, after.d, around);
    const { given = [] } = DELIVERY_CHANGES[name] as { readonly given?: readonly string[] };
    const fields = Object.fromEntries(
      given.filter((field) => field in d).map((field) => [field, after.d?.[field as 'due_at']]),
    );
    const row = changed(name, d, presentOf(d, after.d, sight.now), fields);
    const closes = ['wait', 'hold'].includes(name) || after.attempts.length < before.attempts.length;
    const difference =
      row === null
        ? 'its state'
        : differs({ ...before, d: row, attempts: closes ? after.attempts : before.attempts }, after);
    if (difference === null && refused === null) return { name, counted: before.counted };
    if (difference === null) why.push(`${name}: ${refused}`);
  }
  return why[0] ?? `no step leads from ${brief(d)} to ${brief(after.d)}`;
}

/** Why this step may not be taken now, beside what it changes; null when it may. */
function mayNot(
  name: string,
  rows: Known,
  after: Delivery,
  { sight, earlier, free, pauseUnsure }: Around,
): string | null {
  const { d } = rows;
  if (d === null) return 'there is no row';
  switch (name) {
    case 'take': {
      const now = after.taken_at ?? 0;
      const unpaused = { ...sight, now, partnerPaused: sight.partnerPaused && !pauseUnsure };
      if (after.due_at - now < sight.terms.lease - CLOSE_MS) return 'it is claimed without a lease';
      if (!free) return 'its endpoint has no free slot';
      return mayTake(rows, earlier, unpaused)
        ? null
        : 'it may not be claimed: not due, paused, or an earlier event is under way';
    }
    case 'hold':
      return sight.endpoint || rows.test ? 'it is held although there is an endpoint, or it is a test' : null;
    case 'release':
      return sight.endpoint ? null : 'it is released although there is no endpoint';
    case 'park':
      return sight.partnerPaused || pauseUnsure ? null : 'it is parked although its partner is not paused';
    case 'attempt':
      return 'there is no row of the attempt';
    case 'retry':
      return 'no outcome is recorded';
    case 'put_off':
      return earlier.some(
        (one) => Math.abs((one.d?.first_attempt_at ?? 0) + sight.terms.orderWait - after.due_at) < CLOSE_MS,
      )
        ? null
        : 'no earlier event waits so long';
    default:
      return null;
  }
}

/** What differs between what the model says and what is stored; null when nothing does. */
function differs(model: Rows, stored: Rows): string | null {
  const say = (what: string, one: unknown, other: unknown) =>
    `${what} is ${JSON.stringify(other)}, not ${JSON.stringify(one)}`;
  if ((model.d === null) !== (stored.d === null))
    return `there is ${stored.d === null ? 'no' : 'a'} row in deliveries`;
  for (const field of ['end', 'generation', 'attempts', 'delivered', 'failed'] as const)
    if (model.n?.[field] !== stored.n?.[field]) return say(field, model.n?.[field], stored.n?.[field]);
  for (const field of Object.keys(stored.d ?? {}) as (keyof Delivery)[]) {
    const [one, other] = [model.d?.[field], stored.d?.[field]];
    if (one === other || other === undefined) continue;
    const moments = typeof one === 'number' && typeof other === 'number' && field.endsWith('_at');
    if (moments && Math.abs(one - other) < CLOSE_MS) continue;
    // The wait that follows from the ladder is the least.
    if (moments && field === 'next_attempt_at' && other > one) continue;
    return say(field, one, other);
  }
  for (const { number, outcome } of stored.attempts) {
    const one = model.attempts.find((other) => other.number === number);
    if (one === undefined || one.outcome !== outcome)
      return say(`the outcome of attempt ${number}`, one?.outcome, outcome);
  }
  return model.attempts.length === stored.attempts.length ? null : 'an attempt has no row';
}

const time = (value: unknown): number | null => (typeof value === 'string' ? Date.parse(value) : null);
const monthOf = (ms: number) => Date.parse(`${new Date(ms).toISOString().slice(0, 7)}-01`);
const queueName = (row: Stored) => `${String(row['partner_id'])}/${String(row['environment'])}`;
const rowOf = ({ queue }: Known): Stored => ({
  partner_id: queue.split('/')[0],
  environment: queue.split('/')[1],
});
const brief = (d: Delivery) =>
  JSON.stringify(Object.fromEntries(Object.entries(d).filter(([, value]) => value !== null)));

const unborn = (row: Stored): Known => ({
  test: row['event_type'] === TEST_EVENT_TYPE,
  n: null,
  d: null,
  attempts: [],
  counted: { delivered: 0, failed: 0 },
  queue: queueName(row),
  application: row['application_id'] as string | null,
  sequence: Number(row['sequence']),
  steps: [],
  begunAt: 0,
});

const notificationOf = (row: Stored): Notification => ({
  end: row['end_state'] as Notification['end'],
  generation: Number(row['generation']),
  attempts: Number(row['attempts']),
  delivered: row['delivered_at'] !== null,
  failed: row['failed_month'] !== null,
});

const attemptOf = (row: Stored): Attempt => ({
  number: Number(row['attempt_number']),
  generation: Number(row['generation']),
  began: time(row['started_at']) ?? 0,
  month: null,
  outcome: (row['failure'] === 'gone' ? 'gone' : row['outcome']) as Attempt['outcome'],
});

/** Columns that an older build does not have are not compared. */
function deliveryOf(row: Stored): Delivery {
  const moments = [
    'due',
    'taken',
    'started',
    'first_attempt',
    'next_attempt',
    'hurried',
    'ordered',
    'paused',
    'held',
    'checked',
  ];
  const read = moments
    .map((name) => `${name}_at`)
    .map((field) => [field, field in row ? time(row[field]) : undefined]);
  const fields = ['state', 'generation', 'attempts', 'step', 'delivered'].map((field) => [field, row[field]]);
  return {
    ...Object.fromEntries([...fields, ...read]),
    reserved_month: time(row['reserved_month']),
  } as Delivery;
}

/** The rows after a transaction. */
function afterOf(before: Rows, own: readonly Line[]): Rows {
  let { n, d } = before;
  const attempts = new Map(before.attempts.map((one) => [one.number, one]));
  for (const { about, was, now } of own) {
    if (about === 'delivery') d = now && deliveryOf(now);
    if (about === 'notification') n = now && notificationOf(now);
    if (about === 'attempt' && now !== null) attempts.set(attemptOf(now).number, attemptOf(now));
    if (about === 'attempt' && now === null && was !== null) attempts.delete(attemptOf(was).number);
  }
  return { ...before, n, d, attempts: [...attempts.values()] };
}

/** With the ladder that the row has, else that of the workers; of an unknown one the step is taken as it was made. */
function termsOf(own: readonly Line[], after: Rows, terms: Terms): Terms {
  const stored = own.flatMap(({ was }) => (was?.['ladder_ms'] as readonly number[] | null | undefined) ?? []);
  if (stored.length === 0 && terms.ladder.length > 0) return terms;
  const unknown = after.d === null ? [] : Array.from({ length: 100 }, () => 0);
  const ladder = stored.length > 0 ? stored : unknown;
  return { ...terms, ladder, testLadder: ladder };
}

/** When a statement changed the row: the latest moment that it set, or the one at which the change was kept. */
function presentOf(before: Delivery, after: Delivery, kept: number): number {
  const fields = [
    'taken_at',
    'checked_at',
    'ordered_at',
    'held_at',
    'started_at',
    'due_at',
    'paused_at',
  ] as const;
  const set = fields.flatMap((field) =>
    after[field] !== before[field] && (after[field] ?? kept + 1) <= kept ? [Number(after[field])] : [],
  );
  return set.length > 0 ? Math.max(...set) : kept;
}

/** Transactions in the order in which they can have followed each other, by their last change. */
function transactionsOf(lines: readonly Line[]): Line[][] {
  const all = new Map<string, Line[]>();
  for (const line of lines) {
    const own = all.get(line.tx) ?? [];
    all.delete(line.tx);
    all.set(line.tx, [...own, line]);
  }
  return [...all.values()];
}

function byNotification(transaction: readonly Line[]): Map<string, Line[]> {
  const all = new Map<string, Line[]>();
  for (const line of transaction) {
    const id = (line.now ?? line.was)?.['notification_id'];
    if (typeof id === 'string') all.set(id, [...(all.get(id) ?? []), line]);
  }
  return all;
}
