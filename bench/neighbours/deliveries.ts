import { storeTest } from '../../testbed/notifications';
import { loopP99Ms } from '../harness/api';
import { pause } from '../harness/bench';
import type { Behaviour } from '../harness/receiver';
import { say } from '../../testbed/say';
import { monotonicMs, spread, type Figures } from '../harness/rounds';
import type { Stage } from '../harness/stage';
import { cancelDue, countOutcomes, settled, storeBacklog, storeChange } from '../harness/stored';
import type { Part, Trouble } from './part';

/** Longest wait for the last arrivals: above what a fault could cost, under the time that a send to an endpoint has (15 s). */
const ARRIVAL_LIMIT_MS = 12_000;
/** Between two notifications of the quiet partners, all of them together. */
const QUIET_EVERY_MS = 50;
/**
 * Between two events for the endpoints that flood, all sixteen together; each event is attempted twice in the time. At twice
 * the rate, attempts that fail fill two cores, whatever the answer is.
 */
const FLOOD_EVERY_MS = 200;
/** Far above the 100 calls a minute that a key has. */
const TEST_EVERY_MS = 100;
/** For a neighbour to be fully at work. */
const UNDER_WAY_MS = 1_000;

/** Neighbours that the deliveries of sixteen quiet partners have, all with endpoints of their own. */
export function deliveryParts(stage: Stage, { seconds, due }: { seconds: number; due: number }) {
  const { database, hostile } = stage;
  const [hostilePartner = ''] = hostile.partners;
  /** Trouble with endpoints that behave like this; they answer when it ends. */
  const behaving = (behaviour: Behaviour, trouble: Trouble): Trouble => {
    return async () => {
      hostile.receivers.arrivals.clear();
      hostile.receivers.behave(behaviour);
      const end = await trouble();
      await pause(UNDER_WAY_MS);
      return async () => {
        const arrived = hostile.receivers.arrivals.size;
        const figures = await end();
        if (arrived === 0) throw new Error('nothing was sent to the hostile endpoints');
        hostile.receivers.behave('answer');
        await settled(stage);
        const outcomes = await countOutcomes(database, hostile.partners);
        say(`${behaviour}: attempts to the hostile endpoints so far: ${JSON.stringify(outcomes)}`);
        return { ...figures, arrived };
      };
    };
  };

  /** One endpoint does not answer, and much is due to it. */
  const hang: Trouble = async () => {
    await Promise.all(
      Array.from({ length: Math.ceil(due / 10) }, () => storeChange(database, hostilePartner)),
    );
    return async () => ({});
  };
  /** Attempts to sixteen endpoints that do not take them. */
  const attempts = repeated(FLOOD_EVERY_MS, (nth) =>
    storeChange(database, hostile.partners[nth % hostile.partners.length] ?? ''),
  );
  /** A partner asks for tests of an endpoint that fails. The month's quota refuses most of them. */
  const tests: Trouble = async () => {
    const end = await repeated(TEST_EVERY_MS, () =>
      storeTest(database, { partnerId: hostilePartner, environment: 'live' }),
    )();
    return async () => {
      const figures = await end();
      await cancelDue(stage);
      return figures;
    };
  };
  /** Thousands are due to one partner. The rest is cancelled at the end. */
  const backlog: Trouble = async () => {
    await storeBacklog(database, hostilePartner, due);
    return async () => ({ left: await cancelDue(stage) });
  };

  const quiet = async () => deliverQuietly(stage, seconds);
  return {
    hanging: { quiet, trouble: behaving('hang', hang) },
    // Each attempt that fails costs a new handshake: that is not what the 1xx answers cost.
    flood: { quiet, trouble: behaving('flood', attempts), instead: behaving('refuse', attempts) },
    tests: { quiet, trouble: behaving('refuse', tests) },
    backlog: { quiet, trouble: behaving('answer', backlog) },
    late: { quiet, trouble: behaving('late', backlog) },
  } satisfies Record<string, Part>;
}

const repeated =
  (everyMs: number, task: (nth: number) => Promise<unknown>): Trouble =>
  async () => {
    let over = false;
    const repeating = (async () => {
      let nth = 0;
      for (; !over; nth += 1) await Promise.all([task(nth), pause(everyMs)]);
      return nth;
    })();
    return async () => {
      over = true;
      return { done: await repeating };
    };
  };

/**
 * Notifications of the quiet partners at a steady pace: their load does not depend on how fast it is served.
 * @returns the spread of the times from commit to arrival, and the p99 of the delay of the worker's event loop.
 */
export async function deliverQuietly(stage: Stage, seconds: number): Promise<Figures> {
  const { receivers, partners, database, workerPort } = stage;
  receivers.arrivals.clear();
  receivers.onArrival = () => undefined;
  await loopP99Ms(workerPort);
  const startedAt = monotonicMs();
  const moments = await Promise.all(
    Array.from({ length: (seconds * 1_000) / QUIET_EVERY_MS }, async (_, nth) => {
      await pause(startedAt + nth * QUIET_EVERY_MS - monotonicMs());
      return storeChange(database, partners[nth % partners.length] ?? '');
    }),
  );
  const deadline = monotonicMs() + ARRIVAL_LIMIT_MS;
  const arrived = () => moments.every(([eventId]) => receivers.arrivals.has(eventId));
  while (!arrived() && monotonicMs() < deadline) await pause(5);
  // What has not arrived counts with the time it has taken so far.
  const now = monotonicMs();
  const times = moments.map(([eventId, at]) => (receivers.arrivals.get(eventId) ?? now) - at);
  return { ...spread(times), loop_p99_ms: await loopP99Ms(workerPort) };
}
