import type { ChildProcess } from 'node:child_process';
import { pause } from '../harness/bench';
import { nextMessage } from '../harness/children';
import { withCpu } from '../harness/cpu';
import type { Moment } from '../harness/receiver';
import { monotonicMs, spread, type Figures } from '../harness/rounds';
import type { Stage } from '../harness/stage';
import { settled, storeChange } from '../harness/stored';

export const WAYS = ['ours', 'best'] as const;
export type Way = (typeof WAYS)[number];

export interface Feeding {
  readonly count: number;
  /** Most that are stored or started and not yet received. */
  readonly inFlight: number;
  /** Milliseconds between one that is received and the next. */
  readonly restMs: number;
}

/** From the bare worker: when each was started; all have been answered. */
export interface RanMessage {
  readonly started: readonly Moment[];
}

/** Temporal writes what it lists once a second. Each round pays for its own, and not for that of the round before. */
const REST_MS = 1_500;

/**
 * One round, until everything has been received, recorded and closed.
 * @returns deliveries a second, and the spread of the times from commit (ours) or start to the arrival of the byte that
 *   completes the request; CPU per delivery. `feeder` is this process, which stores ours as the API would; the other worker
 *   starts them itself.
 */
export async function runRound(
  stage: Stage,
  bare: ChildProcess,
  way: Way,
  feeding: Feeding,
): Promise<Figures> {
  const { receivers, temporal, postgres, worker } = stage;
  receivers.arrivals.clear();
  const measured = {
    processes: {
      temporal: temporal.pid,
      worker: (way === 'ours' ? worker : bare).pid,
      feeder: process.pid,
    },
    postgres: { temporal_postgres: temporal.postgres.pid, our_postgres: postgres.pid },
  };
  const startedAt = monotonicMs();
  let seconds = 0;
  const { result: moments, cpu } = await withCpu(measured, feeding.count, async () => {
    const all = way === 'ours' ? await feed(stage, feeding) : await feedBare(stage, bare, feeding);
    await settled(stage);
    seconds = (monotonicMs() - startedAt) / 1_000;
    await pause(REST_MS);
    return all;
  });
  const times = moments.map(([eventId, at]) => (receivers.arrivals.get(eventId) ?? Number.NaN) - at);
  return { per_second: feeding.count / seconds, ...spread(times), ...cpu };
}

/** Stores notifications as the service does, a new one for each that is received. @returns when each was committed. */
async function feed(
  { database, receivers, partners }: Stage,
  { count, inFlight, restMs }: Feeding,
): Promise<Moment[]> {
  const committed: Moment[] = [];
  let stored = 0;
  let received = 0;
  const own = new Set<string>();
  await new Promise<void>((resolve, reject) => {
    const next = () => {
      if (stored >= count) return;
      const partnerId = partners[stored % partners.length] ?? '';
      stored += 1;
      storeChange(database, partnerId, (eventId) => own.add(eventId)).then(
        (moment) => committed.push(moment),
        reject,
      );
    };
    receivers.onArrival = (eventId) => {
      if (!own.has(eventId)) return;
      received += 1;
      if (received === count) resolve();
      else if (restMs > 0) setTimeout(next, restMs);
      else next();
    };
    for (let at = 0; at < inFlight; at += 1) next();
  });
  // An arrival may be known before the answer to its commit.
  while (committed.length < count) await pause(1);
  return committed;
}

async function feedBare(
  { receivers }: Stage,
  bare: ChildProcess,
  feeding: Feeding,
): Promise<readonly Moment[]> {
  const answer = nextMessage<RanMessage>(bare);
  bare.send(feeding);
  const { started } = await answer;
  // The receivers report arrivals in batches.
  while (!started.every(([eventId]) => receivers.arrivals.has(eventId))) await pause(2);
  return started;
}
