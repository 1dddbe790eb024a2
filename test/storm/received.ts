import { byApplication, type Finding, type Row } from './finding';
import type { Kills } from './killer';
import type { StormSight } from './scene';

/** An application's later event may overtake one that was first tried so long before. */
const PATIENCE_MS = 60_000;

/** By the first request for each event that was answered 2xx. */
export function ordered({ receiver, answered }: StormSight, rows: readonly Row[]): Finding {
  const firstAt = new Map<string, number>();
  const taken = new Map<string, number>();
  for (const [nth, { eventId, atMs }] of receiver.received.entries()) {
    if (!firstAt.has(eventId)) firstAt.set(eventId, atMs);
    if (answered[nth] === 200 && !taken.has(eventId)) taken.set(eventId, atMs);
  }
  const overtakes: string[] = [];
  let patient = 0;
  let pairs = 0;
  for (const [applicationId, own] of byApplication(rows)) {
    const events = own.toSorted((a, b) => a.sequence - b.sequence);
    for (const [at, later] of events.entries()) {
      const earlier = events[at - 1];
      if (earlier === undefined) continue;
      const took = taken.get(earlier.eventId) ?? Number.POSITIVE_INFINITY;
      const came = firstAt.get(later.eventId);
      if (came === undefined) continue;
      pairs += 1;
      if (came >= took) continue;
      const waitedMs = later.firstTriedMs - earlier.firstTriedMs;
      if (waitedMs >= PATIENCE_MS) patient += 1;
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

export function attempted(
  { receiver }: Pick<StormSight, 'receiver'>,
  rows: readonly Row[],
  { counts }: Pick<Kills, 'counts'>,
): Finding {
  const seen = arrivals(receiver.received.map(({ eventId }) => eventId));
  const killed = Object.values(counts).reduce((sum, one) => sum + one, 0);
  const astray = rows.filter(({ eventId, attempts, unknown, unanswered }) => {
    const arrived = seen.get(eventId) ?? 0;
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
      `${receiver.received.length} arrived, ${killed} kills`,
    offenders: astray.map(
      (row) =>
        `${row.id}: ${row.attempts}, ${seen.get(row.eventId) ?? 0} arrived, ${row.unknown} unknown, unanswered: ${row.unanswered.join('; ')}`,
    ),
  };
}

/** Before anything of the event was sent. Any other attempt without an answer may have been taken, and its answer lost on the way. */
const NOT_SENT = /^(dns|connect|tls) /;

/** A partner that took an event may get it again, once for each attempt whose outcome we do not know or whose answer did not arrive. */
export function repeated({ receiver, answered }: StormSight, rows: readonly Row[], kills: Kills): Finding {
  const taken = arrivals(
    receiver.received.filter((_one, nth) => answered[nth] === 200).map(({ eventId }) => eventId),
  );
  const twice = rows.filter(({ eventId }) => (taken.get(eventId) ?? 0) > 1);
  const repeats = twice.reduce((sum, { eventId }) => sum + (taken.get(eventId) ?? 0) - 1, 0);
  const unsure = ({ unknown, unanswered }: Row) =>
    unknown + unanswered.filter((why) => !NOT_SENT.test(why)).length;
  const astray = twice.filter((row) => (taken.get(row.eventId) ?? 0) - 1 > unsure(row));
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

function arrivals(eventIds: readonly string[]): Map<string, number> {
  const times = new Map<string, number>();
  for (const id of eventIds) times.set(id, (times.get(id) ?? 0) + 1);
  return times;
}
