import { postgresCpuMs, processCpuMs } from '../cpu';
import { percentile } from '../rounds';
import { nextMessage } from './children';
import { feed, type Feeding } from './feed';
import type { BareKind, Moment, RanMessage, RunMessage } from './messages';
import { monotonicMs } from './monotonic';
import type { Stage } from './stage';

/**
 * What is compared: (a) the floor as first written, (b) ours, (c) the best that the engine can do, (d) the same without a workflow:
 * one activity and its retries, no ladder of ours, no order to it and no record.
 */
export const WAYS = ['regular', 'ours', 'local', 'standalone'] as const;
export type Way = (typeof WAYS)[number];

/** CPU milliseconds, user and system. */
export interface DeliveryCpu {
  readonly temporal: number;
  readonly temporalPostgres: number;
  readonly ourPostgres: number;
  /** Ours, or the floors'. */
  readonly worker: number;
  /** This process: it stores ours, as the API would. For the floors it does nothing; their worker starts them itself. */
  readonly feeder: number;
}

/** One round of one way. */
export interface Round {
  readonly perSecond: number;
  /** From commit (ours) or start to the arrival of the first byte that completes the request, ms. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Per delivery. */
  readonly cpu: DeliveryCpu;
}

/** A round of each, one right after the other. */
export type Turn = Readonly<Record<Way, Round>>;

/** Runs every way in turn, so many times. Who goes first rotates, so that what else the machine does meanwhile falls on all. */
export async function runTurns(stage: Stage, turns: number, feeding: Feeding): Promise<Turn[]> {
  const result: Turn[] = [];
  for (let at = 0; at < turns; at += 1) {
    const rounds: Partial<Record<Way, Round>> = {};
    for (let place = 0; place < WAYS.length; place += 1) {
      const way = WAYS[(place + at) % WAYS.length] ?? 'ours';
      rounds[way] = await runRound(stage, way, feeding);
    }
    result.push(rounds as Turn);
  }
  return result;
}

/** One round, until everything has been received, recorded and closed. */
export async function runRound(stage: Stage, way: Way, feeding: Feeding): Promise<Round> {
  const { arrivals } = stage.receivers;
  arrivals.clear();
  const { count } = feeding;
  const before = await cpuUse(stage, way);
  const ownBefore = process.cpuUsage();
  const startedAt = monotonicMs();
  const moments =
    way === 'ours' ? await feed(stage, stage.partners, feeding) : await bare(stage, way, feeding);
  await settled(stage);
  const seconds = (monotonicMs() - startedAt) / 1_000;
  const own = process.cpuUsage(ownBefore);
  const after = await cpuUse(stage, way);
  return {
    perSecond: count / seconds,
    ...latencies(moments, arrivals),
    cpu: {
      temporal: (after.temporal - before.temporal) / count,
      temporalPostgres: (after.temporalPostgres - before.temporalPostgres) / count,
      ourPostgres: (after.ourPostgres - before.ourPostgres) / count,
      worker: (after.worker - before.worker) / count,
      feeder: (own.user + own.system) / 1_000 / count,
    },
  };
}

/** Percentiles of the time from each moment to the arrival of its event. @throws when one never arrived. */
export function latencies(
  moments: readonly Moment[],
  arrivals: ReadonlyMap<string, number>,
): { p50Ms: number; p95Ms: number; p99Ms: number } {
  const times = moments.map(([eventId, at]) => {
    const arrived = arrivals.get(eventId);
    if (arrived === undefined) throw new Error(`${eventId} never arrived`);
    return arrived - at;
  });
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) => percentile(sorted, share);
  return { p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) };
}

export function eachCpu(of: (name: keyof DeliveryCpu) => number): DeliveryCpu {
  return {
    temporal: of('temporal'),
    temporalPostgres: of('temporalPostgres'),
    ourPostgres: of('ourPostgres'),
    worker: of('worker'),
    feeder: of('feeder'),
  };
}

async function bare(
  stage: Stage,
  kind: BareKind,
  { count, inFlight, restMs }: Feeding,
): Promise<readonly Moment[]> {
  const answer = nextMessage<RanMessage>(stage.bare);
  stage.bare.send({ run: kind, count, inFlight, restMs } satisfies RunMessage);
  const { started } = await answer;
  // The receivers tell of arrivals in batches.
  while (!started.every(([eventId]) => stage.receivers.arrivals.has(eventId))) await pause(2);
  return started;
}

/** Longest wait for that, ms: what failed once waits for its ladder. */
const SETTLE_LIMIT_MS = 180_000;

/** Waits until no notification is under way and no workflow open. @throws when that does not come. */
export async function settled({ database, temporalSql, temporal }: Stage): Promise<void> {
  const deadline = performance.now() + SETTLE_LIMIT_MS;
  for (;;) {
    const [ours] = await database.sql<{ open: number }[]>`
      select /* bench */ count(*)::int as open from notifications where state in ('pending', 'started')`;
    const [theirs] = await temporalSql<{ open: number }[]>`
      select /* bench */ count(*)::int as open from current_executions
      where state in (1, 2) and namespace_id = (select id from namespaces where name = ${temporal.namespace})
        and (workflow_id like 'notification/%' or workflow_id like 'evt_%')`;
    const [alone] = await temporalSql<{ open: number }[]>`
      select /* bench */ count(*)::int as open from current_chasm_executions
      where state in (1, 2) and business_id like 'evt_%'`;
    if (ours?.open === 0 && theirs?.open === 0 && alone?.open === 0) return;
    if (performance.now() > deadline)
      throw new Error(
        `${ours?.open} notifications, ${theirs?.open} workflows and ${alone?.open} activities do not end`,
      );
    await pause(5);
  }
}

async function cpuUse(stage: Stage, way: Way): Promise<Omit<DeliveryCpu, 'feeder'>> {
  return {
    temporal: processCpuMs(stage.temporal.pid),
    temporalPostgres: await postgresCpuMs(stage.temporal.postgres.pid),
    ourPostgres: await postgresCpuMs(stage.postgres.pid),
    worker: processCpuMs((way === 'ours' ? stage.worker : stage.bare).pid ?? 0),
  };
}

export const pause = async (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
