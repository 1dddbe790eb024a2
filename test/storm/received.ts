import { byApplication, type Finding, type Row } from './finding';
import type { Kills } from './killer';
import type { StormSight } from './scene';

/** An application's later event may overtake one that was first tried so long before. */
export const ORDER_WAIT_MS = 60_000;

type Seen = Pick<StormSight, 'receiver' | 'answered'>;

const succeeded = (status: number | null | undefined) =>
  typeof status === 'number' && status >= 200 && status < 300;
/** Such an answer, or none, fails a kept connection: the event is sent again in the same attempt. */
const brokeOff = (status: number | null | undefined) => status === null || status === 408;

/**
 * When requests for each event came, those of them that were answered 2xx, and those whose connection failed instead, in Unix
 * milliseconds.
 */
export function arrivals({ receiver, answered }: Seen) {
  const came = new Map<string, number[]>();
  const taken = new Map<string, number[]>();
  const broken = new Map<string, number[]>();
  for (const [nth, { eventId, atMs }] of receiver.received.entries()) {
    const status = answered[nth];
    const kinds = [came, ...(succeeded(status) ? [taken] : []), ...(brokeOff(status) ? [broken] : [])];
    for (const moments of kinds)
      moments.set(eventId, [...(moments.get(eventId) ?? []), performance.timeOrigin + atMs]);
  }
  return { came, taken, broken };
}

/** The receiver's own log is the oracle: an answer to another event delivers none. */
export function accepted(seen: Seen, rows: readonly Row[]): Finding {
  const { taken } = arrivals(seen);
  const delivered = rows.filter(({ state }) => state === 'delivered');
  return {
    invariant: '    an event is recorded as delivered only by its own 2xx',
    looked: delivered.length,
    seen: `${delivered.length} delivered`,
    offenders: delivered
      .filter(({ eventId }) => !taken.has(eventId))
      .map(({ id, eventId }) => `${id}: ${eventId}`),
  };
}

/** By the first request for each event that was answered 200. */
export function ordered(seen: Seen, rows: readonly Row[]): Finding {
  const { came, taken } = arrivals(seen);
  const overtakes: string[] = [];
  let patient = 0;
  let pairs = 0;
  for (const [applicationId, own] of byApplication(rows)) {
    const events = own.toSorted((a, b) => a.sequence - b.sequence);
    for (const [at, later] of events.entries()) {
      const earlier = events[at - 1];
      if (earlier === undefined) continue;
      const [took = Number.POSITIVE_INFINITY] = taken.get(earlier.eventId) ?? [];
      const [first] = came.get(later.eventId) ?? [];
      if (first === undefined) continue;
      pairs += 1;
      if (first >= took) continue;
      const waitedMs = later.firstTriedMs - earlier.firstTriedMs;
      if (waitedMs >= ORDER_WAIT_MS) patient += 1;
      else
        overtakes.push(
          `${applicationId}: ${later.sequence} before ${earlier.sequence}, tried ${Math.round(waitedMs)} ms after it, ` +
            `${earlier.attempts} attempts of it, ${earlier.unknown} unknown`,
        );
    }
  }
  return {
    invariant: '    no event overtakes an earlier one of its application',
    looked: pairs,
    seen: `${pairs} pairs, ${patient} after a minute's wait`,
    offenders: overtakes,
  };
}

export function signed(
  { receiver, signatureFaults }: Pick<StormSight, 'receiver' | 'signatureFaults'>,
  rows: readonly Row[],
): Finding {
  const bodies = new Map(rows.map(({ eventId, body }) => [eventId, body]));
  const differing = receiver.received
    .filter(({ eventId, body }) => bodies.get(eventId) !== body)
    .map(({ eventId }) => `other bytes for ${eventId}`);
  return {
    invariant: 'I5  every signature holds, the bytes are those stored',
    looked: receiver.received.length,
    seen: `${receiver.received.length} requests`,
    offenders: [...signatureFaults, ...differing],
  };
}

export function attempted(seen: Seen, rows: readonly Row[], { counts }: Pick<Kills, 'counts'>): Finding {
  const { came, broken } = arrivals(seen);
  const arrivedOf = ({ eventId }: Row) =>
    (came.get(eventId)?.length ?? 0) - (broken.get(eventId)?.length ?? 0);
  const killed = Object.values(counts).reduce((sum, one) => sum + one, 0);
  const astray = rows.filter((row) => {
    const { attempts, unknown, unanswered } = row;
    const arrived = arrivedOf(row);
    // A connection that a starved machine did not open in time brings nothing: the attempt has to say so.
    return arrived > attempts || attempts - arrived > unknown + unanswered.length || unknown > killed;
  });
  const causes = rows.flatMap(({ unanswered }) => unanswered);
  const total = rows.reduce((sum, { attempts }) => sum + attempts, 0);
  const unknown = rows.reduce((sum, row) => sum + row.unknown, 0);
  return {
    invariant:
      'I9  attempts stored are those that arrived, but for those of dead processes and those that say they did not',
    looked: total,
    seen:
      `${total} attempts, ${unknown} unknown, ${causes.length} unanswered${causes.length > 0 ? ` (${[...new Set(causes)].join('; ')})` : ''}, ` +
      `${seen.receiver.received.length} arrived, ${killed} kills`,
    offenders: astray.map(
      (row) =>
        `${row.id}: ${row.attempts}, ${arrivedOf(row)} arrived, ${row.unknown} unknown, unanswered: ${row.unanswered.join('; ')}`,
    ),
  };
}

/** Before anything of the event was sent. Any other attempt without an answer may have been taken, and its answer lost on the way. */
const NOT_SENT = /^(dns|connect|tls) /;

/** A partner that took an event may get it again, once for each attempt whose outcome we do not know or whose answer did not arrive. */
export function repeated(seen: Seen, rows: readonly Row[], kills: Kills): Finding {
  const { taken } = arrivals(seen);
  const repeatsOf = ({ eventId }: Row) => (taken.get(eventId)?.length ?? 1) - 1;
  const repeats = rows.reduce((sum, row) => sum + repeatsOf(row), 0);
  const unsure = ({ unknown, unanswered }: Row) =>
    unknown + unanswered.filter((why) => !NOT_SENT.test(why)).length;
  const astray = rows.filter((row) => repeatsOf(row) > unsure(row));
  return {
    invariant:
      '    an event is taken twice only where a kill left its attempt unknown, or its answer was lost',
    looked: taken.size,
    seen: `${repeats} repeats; ${kills.attemptsUnderWay} attempts were under way at the kills`,
    offenders: astray.map(
      ({ id, unknown, unanswered }) => `${id}: ${unknown} unknown, ${unanswered.join('; ')}`,
    ),
  };
}
