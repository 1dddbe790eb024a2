import { SENDS_PER_FAST_ENDPOINT } from '../../../domain/delivery-now';
import { DELIVERY_CHANGES, TEST_EVENT_TYPE, type DeliveryEvent } from '../../../domain/notification-states';
import type { Finding } from '../../storm/finding';
import { OF_ROWS } from '../invariants';
import { afterEarlier, begun, change, end, hasSlot, open, record, unborn } from '../rows';
import type { Rows, Sight, Terms } from '../rows';
import { afterOf, grouped, idOf, isPrepared, presentOf, queueName, type Line, type Stored } from './kept';

export interface Verdict {
  readonly deliveries: number;
  readonly transitions: number;
  /** The first transition that the model does not have, and the state that it was in; null when it accepts all. */
  readonly refused: string | null;
}

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

/** Compares lines with the model, transaction by transaction, up to the first that it refuses. */
export function check(lines: readonly Line[]): Verdict {
  const known = new Map<string, Known>();
  const applications = new Map<string, string[]>();
  const queues = new Map<string, Queue>();
  let transitions = 0;
  let refused: string | null = null;

  function queueOf(name: string): Queue {
    const queue = queues.get(name) ?? {
      endpoint: false,
      endpointAt: 0,
      paused: false,
      pausedAt: 0,
      taken: new Map(),
    };
    queues.set(name, queue);
    return queue;
  }

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
  function sightsOf(id: string, before: Known, after: Rows, changes: readonly Line[]): Sight[] {
    const queue = queueOf(before.queue);
    const moment = changes.at(-1)?.moment ?? 0;
    const now = presentOf(changes);
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
        terms: termsOf(changes, after),
        endpoint,
        // A trace does not show which endpoints are fast.
        slotFree: holding.length < SENDS_PER_FAST_ENDPOINT,
        partnerPaused,
        earlier,
        month: Date.parse(`${new Date(now).toISOString().slice(0, 7)}-01`),
        quotaUsed: false,
      })),
    );
  }

  function explain(id: string, changes: readonly Line[], owe: (what: string, units: number) => void): void {
    const inserted = changes.find(({ about, was }) => about === 'notification' && was === null)?.now;
    const before = known.get(id) ?? (inserted ? unknown(inserted) : null);
    // One that was there before the changes were kept.
    if (before === null) return;
    const after = afterOf(before, changes);
    if (differences(before, after).length === 0 && before.n !== null) return;
    const moment = changes.at(-1)?.moment ?? 0;
    const { paused } = queueOf(before.queue);
    const step = stepBetween(before, after, sightsOf(id, before, after, changes), paused);
    if ('wrong' in step) {
      if (!changes.every(isPrepared)) throw new Refusal(`no step leads there; ${step.wrong.join('; ')}`);
      const { delivered = false, failed = false } = after.n ?? {};
      const counted = { delivered: Number(delivered), failed: Number(failed && !delivered) };
      return place(id, { ...before, ...after, counted }, moment);
    }
    const { name, rows } = step;
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
    const [was, is] = [unitsOf(before), unitsOf(next)];
    for (const kind of KINDS) owe(`${before.queue} ${before.test} ${kind}`, was[kind] - is[kind]);
  }

  function note({ about, was, now, moment }: Line): void {
    const queue = queueOf(queueName(now ?? was ?? {}));
    const isActive = (row: Stored | null) => row?.['state'] === 'active';
    if (about === 'endpoint' && isActive(now) !== isActive(was))
      Object.assign(queue, { endpoint: isActive(now), endpointAt: moment });
    if (about === 'pause')
      Object.assign(queue, { paused: now !== null && now['resumed_at'] === null, pausedAt: moment });
  }

  for (const [, transaction] of grouped(lines, ({ tx }) => tx)) {
    /** By how much more monthly_counts has changed than the rows say. */
    const owed = new Map<string, number>();
    const owe = (what: string, units: number) => void owed.set(what, (owed.get(what) ?? 0) + units);
    for (const line of transaction) {
      const { about, was, now } = line;
      if (about === 'endpoint' || about === 'pause') note(line);
      const row = now ?? was ?? {};
      const of = `${queueName(row)} ${row['event_type'] === TEST_EVENT_TYPE}`;
      if (about === 'count')
        for (const kind of KINDS) owe(`${of} ${kind}`, Number(now?.[kind] ?? 0) - Number(was?.[kind] ?? 0));
    }
    let id = '';
    try {
      const changes = transaction.filter((line) => idOf(line) !== '');
      for (const [whose, own] of grouped(changes, idOf)) explain((id = whose), own, owe);
      const wrong = [...owed].find(([, units]) => units !== 0);
      if (wrong !== undefined && id !== '' && !transaction.every(isPrepared))
        throw new Refusal(`the count of "${wrong[0]}" changes by ${wrong[1]} more than the rows say`);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const state = known.get(id);
      refused = `${id} after ${state?.steps.join(', ')}: ${error.message}, in ${JSON.stringify(state)}`;
      break;
    }
  }
  return { deliveries: known.size, transitions, refused };
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

const unknown = (row: Stored): Known => ({
  ...unborn(row['event_type'] === TEST_EVENT_TYPE),
  queue: queueName(row),
  application: row['application_id'] as string | null,
  sequence: Number(row['sequence']),
  steps: [],
  begunAt: 0,
});

/** With the ladder that the row has. Without one, the step is taken as it was made. */
function termsOf(changes: readonly Line[], after: Rows): Terms {
  const terms = { lease: LEASE_MS, orderWait: ORDER_WAIT_MS, checkAfter: -Infinity };
  const stored = changes.flatMap(
    ({ was }) => (was?.['ladder_ms'] as readonly number[] | null | undefined) ?? [],
  );
  const any = after.d === null ? [] : Array.from({ length: 100 }, () => 0);
  return { ...terms, ladder: stored.length > 0 ? stored : any };
}

const KINDS = ['delivered', 'failed', 'reserved'] as const;
/** What monthly_counts has of an event. */
const unitsOf = ({ counted, d }: Rows) => ({ ...counted, reserved: d?.reserved_month == null ? 0 : 1 });

type Explained = { readonly name: string; readonly rows: Rows } | { readonly wrong: readonly string[] };

/** The step of the model that leads from one to the other, or else how far from it the nearest is. */
function stepBetween(before: Rows, after: Rows, sights: readonly Sight[], paused: boolean): Explained {
  let wrong = differences(before, after);
  for (const sight of sights)
    for (const [name, rows] of possible(before, after, sight)) {
      // A pause is known to every attempt that begins after it.
      if (name === 'attempt' && sight.partnerPaused !== paused) continue;
      const different = differences(rows, after);
      if (different.length === 0) return { name, rows };
      if (different.length < wrong.length) wrong = [`what is nearest is ${name}`, ...different];
    }
  return { wrong };
}

/** The rows after each transaction of the model that may be made now. What the model leaves open is as in the rows that were stored. */
function* possible(before: Rows, after: Rows, sight: Sight): Iterable<[string, Rows]> {
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
    for (const outcome of ['delivered', 'failed', 'gone', 'ours'] as const)
      yield [`record ${outcome}`, record(before, number, outcome, sight).rows];
  for (const as of ['failed', 'cancelled', 'expired'] as const) {
    const done = d && end(before, d.generation, as, sight.now);
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
  const [wanted, found] = [factsOf(model), factsOf(stored)];
  return [...new Set([...wanted.keys(), ...found.keys()])]
    .filter((what) => !isSame(what, wanted.get(what), found.get(what)))
    .map((what) => `${what} is ${JSON.stringify(found.get(what))}, not ${JSON.stringify(wanted.get(what))}`);
}

/** All that is compared, by names. */
function factsOf({ n, d, attempts }: Rows): Map<string, unknown> {
  const of = (table: string, row: object | null) =>
    Object.entries(row ?? {}).map(([field, value]): [string, unknown] => [`${table}.${field}`, value]);
  return new Map<string, unknown>([
    ['there is a row of notifications', n !== null],
    ['there is a row of deliveries', d !== null],
    ...of('notifications', n),
    ...of('deliveries', d),
    ...attempts.map(({ number, outcome }): [string, unknown] => [
      `the outcome of attempt ${number}`,
      outcome,
    ]),
  ]);
}

function isSame(what: string, wanted: unknown, found: unknown): boolean {
  // An older build does not have every column.
  if (wanted === found || (found === undefined && what.startsWith('deliveries.'))) return true;
  if (typeof wanted !== 'number' || typeof found !== 'number' || !what.endsWith('_at')) return false;
  // The wait that follows from the ladder is the least.
  return Math.abs(wanted - found) < CLOSE_MS || (what.endsWith('.next_attempt_at') && found > wanted);
}
