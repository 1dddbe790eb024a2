import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from '../../../db/postgres/connect';
import type { Finding } from '../../storm/finding';
import { DELIVERY_CHANGES, TEST_EVENT_TYPE, type DeliveryEvent } from '../../../domain/notification-states';
import { OF_ROWS } from '../invariants';
import { NEW_DELIVERY, afterEarlier, begun, change, end, hasSlot, open, record, unborn } from '../rows';
import type { Attempt, Delivery, Moment, Notification, Rows, Sight, Terms } from '../rows';

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
  /** The first transition that the model does not have, and the state that it was in; null when it accepts all. */
  readonly refused: string | null;
}

/** From now on the changes are kept. Call it as the owner of the schema. */
export const keepChanges = (sql: Sql) =>
  sql.unsafe(readFileSync(join(__dirname, 'keep-changes.sql'), 'utf8'));

/** What was kept, in the order of its changes. */
export const keptChanges = async (sql: Sql): Promise<readonly Line[]> =>
  sql<Line[]>`select * from model_changes order by id`;

/** Logins of the service's own processes. */
const PROCESS = /^quotes_/;
const SLOTS = 16;
const LEASE_MS = 10_000;
const ORDER_WAIT_MS = 60_000;
/** Two sessions may not have seen each other's change of an endpoint, a pause, or an event that is sent again, for so long. */
const UNSURE_MS = 5_000;
/** Between moments that one statement sets. */
const CLOSE_MS = 1_000;

class Refusal extends Error {}

/** A notification, as its rows were last. */
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
 */
export function check(lines: readonly Line[]): Verdict {
  const known = new Map<string, Known>();
  const applications = new Map<string, string[]>();
  const queues = new Map<string, Queue>();
  let transitions = 0;

  const queueOf = (name: string): Queue => {
    const unknown = { endpoint: false, endpointAt: 0, paused: false, pausedAt: 0, taken: new Map() };
    return queues.get(name) ?? (queues.set(name, unknown), unknown);
  };

  function place(id: string, next: Known, moment: number): void {
    const { taken } = queueOf(next.queue);
    const before = known.get(id);
    if (next.application !== null && before === undefined)
      applications.set(next.application, [...(applications.get(next.application) ?? []), id]);
    if (next.d?.taken_at == null) taken.delete(id);
    else if (next.d.state === 'queued') taken.set(id, 0);
    else if (before === undefined || !hasSlot(before, moment + UNSURE_MS)) taken.set(id, moment + UNSURE_MS);
    known.set(id, next);
  }

  /** What such a transaction may have seen: two things, where it may not have seen a change that was just made. */
  function sightsOf(id: string, before: Known, after: Rows, own: readonly Line[]): Sight[] {
    const queue = queueOf(before.queue);
    const moment = own.at(-1)?.moment ?? 0;
    const now = presentOf(own);
    const holding = [...queue.taken].filter(([one, seenFrom]) => {
      const rows = known.get(one);
      return one !== id && seenFrom <= moment && rows !== undefined && hasSlot(rows, now);
    });
    const earlier = (applications.get(before.application ?? '') ?? [])
      .flatMap((one) => known.get(one) ?? [])
      .filter(
        (one) =>
          one.sequence < before.sequence && (one.begunAt < moment - UNSURE_MS || one.n?.generation === 1),
      );
    const either = (is: boolean, since: number) => (moment - since < UNSURE_MS ? [is, !is] : [is]);
    return either(queue.endpoint, queue.endpointAt).flatMap((endpoint) =>
      either(queue.paused, queue.pausedAt).map((partnerPaused) => ({
        now,
        terms: termsOf(own, after),
        endpoint,
        slotFree: holding.length < SLOTS,
        partnerPaused,
        earlier,
        month: monthOf(now),
        quotaUsed: false,
      })),
    );
  }

  function explain(id: string, own: readonly Line[], owe: (what: string, units: number) => void): void {
    const inserted = own.find(({ about, was }) => about === 'notification' && was === null)?.now;
    const before = known.get(id) ?? (inserted ? unknown(inserted) : null);
    // One that was there before the changes were kept.
    if (before === null) return;
    const moment = own.at(-1)?.moment ?? 0;
    const after = afterOf(before, own);
    const { paused } = queueOf(before.queue);
    const changes = differences(before, after);
    if (changes.length === 0 && before.n !== null) return;
    let nearest = changes;
    for (const sight of sightsOf(id, before, after, own))
      for (const [name, rows] of possible(before, after, sight)) {
        // A pause is known to every attempt that begins after it.
        if (name === 'attempt' && sight.partnerPaused !== paused) continue;
        const wrong = differences(rows, after);
        if (wrong.length > 0) {
          if (wrong.length < nearest.length) nearest = [`what is nearest is ${name}`, ...wrong];
          continue;
        }
        const next: Known = {
          ...before,
          ...after,
          counted: rows.counted,
          steps: [...before.steps.slice(-9), name],
          begunAt: ['store', 'resend', 'release'].includes(name) ? moment : before.begunAt,
        };
        for (const [invariant, breaks] of Object.entries(OF_ROWS))
          if (breaks(next, before)) throw new Refusal(`${name}: ${invariant} is broken`);
        place(id, next, moment);
        transitions += 1;
        const unit = ({ d }: Rows) => (d?.reserved_month == null ? 0 : 1);
        const of = `${before.queue} ${before.test}`;
        owe(`${of} delivered`, before.counted.delivered - next.counted.delivered);
        owe(`${of} failed`, before.counted.failed - next.counted.failed);
        owe(`${of} reserved`, unit(before) - unit(next));
        return;
      }
    if (!own.every(isPrepared))
      throw new Refusal(['no step leads there', ...new Set([...changes, ...nearest])].join('; '));
    const { delivered = false, failed = false } = after.n ?? {};
    const counted = { delivered: Number(delivered), failed: Number(failed && !delivered) };
    place(id, { ...before, ...after, counted }, moment);
  }

  for (const transaction of grouped(lines, ({ tx }) => tx)) {
    const owed = new Map<string, number>();
    const owe = (what: string, units: number) => void owed.set(what, (owed.get(what) ?? 0) + units);
    for (const { about, was, now, moment } of transaction) {
      const row = now ?? was ?? {};
      if (about === 'endpoint' && (now?.['state'] === 'active') !== (was?.['state'] === 'active'))
        Object.assign(queueOf(queueName(row)), { endpoint: now?.['state'] === 'active', endpointAt: moment });
      if (about === 'pause')
        Object.assign(queueOf(queueName(row)), {
          paused: now !== null && now['resumed_at'] === null,
          pausedAt: moment,
        });
      if (about === 'count')
        for (const kind of ['delivered', 'failed', 'reserved'])
          owe(
            `${queueName(row)} ${row['event_type'] === TEST_EVENT_TYPE} ${kind}`,
            Number(now?.[kind] ?? 0) - Number(was?.[kind] ?? 0),
          );
    }
    let id = '';
    try {
      const about = transaction.filter((line) => idOf(line) !== '');
      for (const own of grouped(about, idOf)) explain((id = idOf(own[0])), own, owe);
      const wrong = [...owed].find(([, units]) => units !== 0);
      if (wrong !== undefined && id !== '' && !transaction.every(isPrepared))
        throw new Refusal(`the count of "${wrong[0]}" changes by ${wrong[1]} more than the rows say`);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const state = known.get(id);
      const refused = `${id} after ${state?.steps.join(', ')}: ${error.message}, in ${JSON.stringify(state)}`;
      return { deliveries: known.size, transitions, refused };
    }
  }
  return { deliveries: known.size, transitions, refused: null };
}

/** Every transition of every delivery of a run, compared with the model. */
export function accordingToModel(lines: readonly Line[]): Finding {
  const { deliveries, transitions, refused } = check(lines);
  return {
    invariant: '    every transition of every delivery is one of the model',
    looked: transitions,
    // A scene may have only rows that the test has put there itself.
    optional: true,
    seen: `${transitions} transitions of ${deliveries} deliveries`,
    offenders: refused === null ? [] : [refused],
  };
}

/** The rows after each transaction of the model that may be made now. What the model leaves open is as in the rows that were stored. */
function* possible(before: Known, after: Rows, sight: Sight): Iterable<[string, Rows]> {
  const { n, d } = before;
  const month = after.d?.reserved_month ?? null;
  const due = after.d?.due_at ?? 0;
  if (n === null) return yield ['store', begun(before, month, due, sight.endpoint).rows];
  if (d === null) yield ['resend', begun(before, month, due, true, after.d?.priority).rows];
  else {
    const { kind, rows } = open(before, d.generation, sight);
    yield [kind === 'open' ? 'attempt' : kind, rows];
  }
  for (const { number } of before.attempts)
    for (const outcome of ['delivered', 'failed', 'gone', 'ours'] as const) {
      const { rows } = record(before, number, outcome, sight);
      yield [`record ${outcome}`, rows];
    }
  for (const as of ['failed', 'cancelled', 'expired'] as const) {
    const done = d === null ? null : end(before, d.generation, as, sight.now);
    if (done !== null) yield [`end ${as}`, done.rows];
  }
  for (const one of sight.earlier) {
    const later = d && afterEarlier('put_off', d, one.d?.first_attempt_at ?? null, sight);
    if (later) yield ['put_off', { ...before, d: later }];
  }
  for (const name of Object.keys(DELIVERY_CHANGES) as DeliveryEvent[]) {
    const { given = [] } = DELIVERY_CHANGES[name] as { readonly given?: readonly string[] };
    const fields = given
      .filter((field) => d && field in d)
      .map((field) => [field, after.d?.[field as 'due_at']]);
    const rows = change(name, before, sight, Object.fromEntries(fields));
    const lease = name !== 'take' || due - sight.now > LEASE_MS - CLOSE_MS;
    if (rows !== null && lease) yield [name, rows];
  }
}

/** What differs between what the model says and what is stored. */
function differences(model: Rows, stored: Rows): string[] {
  const all: string[] = [];
  const compare = (what: string, one: unknown, other: unknown) => {
    // An older build does not have every column.
    if (one === other || other === undefined) return;
    const moments = typeof one === 'number' && typeof other === 'number' && what.endsWith('_at');
    if (moments && Math.abs(one - other) < CLOSE_MS) return;
    // The wait that follows from the ladder is the least.
    if (moments && what === 'next_attempt_at' && other > one) return;
    all.push(`${what} is ${JSON.stringify(other)}, not ${JSON.stringify(one)}`);
  };
  for (const [what, one, other] of [
    ['the row of notifications', model.n, stored.n],
    ['the row of deliveries', model.d, stored.d],
  ] as const) {
    if (one === null || other === null) compare(what, one, other);
    else
      for (const [field, value] of Object.entries(one))
        compare(field, value, other[field as keyof typeof other]);
  }
  const outcomes = ({ attempts }: Rows) => new Map(attempts.map(({ number, outcome }) => [number, outcome]));
  const [one, other] = [outcomes(model), outcomes(stored)];
  for (const number of new Set([...one.keys(), ...other.keys()]))
    compare(`the outcome of attempt ${number}`, one.get(number) ?? 'none', other.get(number) ?? 'none');
  return all;
}

const time = (value: unknown): Moment => (typeof value === 'string' ? Date.parse(value) : null);
const monthOf = (ms: number) => Date.parse(`${new Date(ms).toISOString().slice(0, 7)}-01`);
const queueName = (row: Stored) => `${String(row['partner_id'])}/${String(row['environment'])}`;
const idOf = (line: Line | undefined) => ((line?.now ?? line?.was)?.['notification_id'] ?? '') as string;
const isPrepared = ({ login }: Line) => login !== undefined && !PROCESS.test(login);

const unknown = (row: Stored): Known => ({
  ...unborn(row['event_type'] === TEST_EVENT_TYPE),
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
const deliveryOf = (row: Stored) =>
  Object.fromEntries(
    Object.keys(NEW_DELIVERY)
      .filter((name) => name in row)
      .map((name) => [name, /_at$|_month$/.test(name) ? time(row[name]) : row[name]]),
  ) as unknown as Delivery;

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

/** With the ladder that the row has. Without one, the step is taken as it was made. */
function termsOf(own: readonly Line[], after: Rows): Terms {
  const terms = { lease: LEASE_MS, orderWait: ORDER_WAIT_MS, checkAfter: -Infinity };
  const stored = own.flatMap(({ was }) => (was?.['ladder_ms'] as readonly number[] | null | undefined) ?? []);
  const unknown = after.d === null ? [] : Array.from({ length: 100 }, () => 0);
  return { ...terms, ladder: stored.length > 0 ? stored : unknown };
}

/** When a statement changed the rows: the latest moment that it set, or the one at which the change was kept. */
function presentOf(own: readonly Line[]): number {
  const kept = own.at(-1)?.moment ?? 0;
  const set = own
    .filter(({ about }) => about === 'delivery' || about === 'attempt')
    .flatMap(({ was, now }) =>
      Object.entries(now ?? {}).flatMap(([name, value]) =>
        name.endsWith('_at') && value !== was?.[name] ? (time(value) ?? []) : [],
      ),
    );
  return Math.max(...set.filter((moment) => moment <= kept), 0) || kept;
}

/** Lines by a key, in the order in which the groups can have followed each other: by their last line. */
function grouped(lines: readonly Line[], key: (line: Line) => string): Line[][] {
  const all = new Map<string, Line[]>();
  for (const line of lines) {
    const own = all.get(key(line)) ?? [];
    own.push(line);
    all.delete(key(line));
    all.set(key(line), own);
  }
  return [...all.values()];
}
