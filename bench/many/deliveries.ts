import type { ChildProcess } from 'node:child_process';
import { ulid } from 'ulid';
import { addLender } from '../../db/applications/lenders';
import { issueServiceKey, type ServiceCaller } from '../../db/service-keys';
import { SOMETHING_IS_DUE } from '../../db/notifications/notification';
import { hint } from '../../db/postgres/hints';
import { asRole } from '../../testbed/roles';
import { startsByPath } from '../harness/api';
import { pause, type Bench } from '../harness/bench';
import { endChild, nextMessage, startChild } from '../harness/children';
import { mainThreadMs, withCpu } from '../harness/cpu';
import { say } from '../../testbed/say';
import { monotonicMs, spread, type Figures } from '../harness/rounds';
import { startWorker, type Ground } from '../harness/stage';
import type { Fed, Feed } from './feeder';
import { watchWaits } from './waits';

const LENDER = 'bench_lender';
/** Temporal writes what it lists once a second: each cell pays for its own. */
const REST_MS = 1_500;
/** Longest wait for what was sent to be recorded. */
const RECORDED_WITHIN_MS = 10_000;

export interface Cell {
  readonly workers: number;
  readonly endpoints: number;
  /** Changes a second; null: a backlog. */
  readonly rate: number | null;
}

export type MeasuredCell = Cell &
  Record<'per_second' | 'p50_ms' | 'p95_ms' | 'p99_ms' | 'cpu_ms' | 'fast_share' | 'lost', number>;

/** Figures that are printed beside the cell. */
interface Beside {
  /** CPU milliseconds of each part, for each delivery. */
  readonly cpu: Figures;
  readonly loopShare: number;
  readonly paths: string;
  readonly waits: string;
}

export interface Limits {
  /** Changes of a backlog. */
  readonly count: number;
  /** Seconds of a steady rate. */
  readonly seconds: number;
  /** Longest wait for the last arrival, in seconds. What has not arrived then is lost. */
  readonly limit: number;
}

/** What measures deliveries: partners with a quote each, and processes that store changes of applications. */
export type Field = Awaited<ReturnType<typeof openField>>;

export async function openField(bench: Bench, ground: Ground, feeders: number) {
  const { database, groups, postgres } = ground;
  // Round the groups, so that any number of them uses all processes of receivers.
  const partners = Array.from({ length: groups[0]?.partners.length ?? 0 }, (_, at) =>
    groups.flatMap((group) => group.partners[at] ?? []),
  ).flat();
  const service = await database.db.transaction(async (tx): Promise<ServiceCaller> => {
    await addLender(tx, { lender: LENDER, name: 'Bench', referenceFormat: '[0-9A-Z]{26}' });
    const binding = { lender: LENDER, environment: 'live' } as const;
    const { summary } = await issueServiceKey(tx, { ...binding, name: 'bench', expiresInSeconds: null });
    return { ...binding, keyId: summary.keyId };
  });
  const quotes = partners.map((partnerId) => ({ partnerId, quoteId: `qte_${ulid()}` }));
  await database.sql.unsafe(
    `insert into quotes (quote_id, partner_id, key_id, environment, merchant_id, loan_pence, deposit_pence, merchant_finance_url,
      merchant_reference, request_id, response, fitted)
    select quote, partner, 'key_x', 'live', 'M1000002', 90000, 10000, 'https://shop.example/finance?basket=1', 'order 1', 'rq_1',
      '{"success":true,"data":{"products":[]}}', '[["prd_1",1,"${LENDER}","Classic 12",10000,90000,7891,94692]]'
    from unnest($1::text[], $2::text[]) as q (quote, partner)`,
    [quotes.map(({ quoteId }) => quoteId), quotes.map(({ partnerId }) => partnerId)],
  );
  const children = await Promise.all(
    Array.from({ length: feeders }, async () => {
      const child = startChild(bench, 'bench/many/feeder.ts', { args: [asRole(postgres.url, 'api')] });
      await nextMessage(child);
      return child;
    }),
  );
  return { bench, ground, quotes, service, feeders: children };
}

/** Starts workers for a task, and ends them. */
export async function withWorkers<T>(
  { bench, ground }: Field,
  count: number,
  task: (workers: readonly StartedWorker[]) => Promise<T>,
): Promise<T> {
  say(`starting ${count} workers`);
  const workers = await Promise.all(Array.from({ length: count }, () => startWorker(bench, ground)));
  try {
    return await task(workers);
  } finally {
    await Promise.all(workers.map(({ worker }) => endChild(worker)));
  }
}

type StartedWorker = Awaited<ReturnType<typeof startWorker>>;

export async function measureCell(
  field: Field,
  workers: readonly StartedWorker[],
  { endpoints, rate }: Pick<Cell, 'endpoints' | 'rate'>,
  limits: Limits,
): Promise<{ cell: MeasuredCell; beside: Beside }> {
  const { database, temporalSql, temporal, postgres, groups } = field.ground;
  const count = rate === null ? limits.count : rate * limits.seconds;
  const quotes = field.quotes.slice(0, endpoints);
  const pidOf = ({ pid }: ChildProcess) => pid;
  const named = (name: string, pids: readonly (number | undefined)[]) =>
    Object.fromEntries(pids.map((pid, at) => [`${name}_${at + 1}`, pid]));
  const measured = {
    processes: {
      ...named(
        'worker',
        workers.map(({ worker }) => worker.pid),
      ),
      ...named('feeder', field.feeders.map(pidOf)),
      ...named(
        'receiver',
        groups.map(({ receivers }) => receivers.pid),
      ),
      temporal: temporal.pid,
    },
    postgres: { temporal_postgres: temporal.postgres.pid, our_postgres: postgres.pid },
  };
  const loops = () => workers.reduce((sum, { worker }) => sum + mainThreadMs(worker.pid ?? 0), 0);
  const pathsBefore = await pathsOf(workers);
  const arrivals = watchArrivals(field.ground);
  const waits = [watchWaits(database.sql), watchWaits(temporalSql)];
  let [fromMs, loopMs, untilMs, loopShare] = [0, 0, 0, 0];
  const { result: committed, cpu } = await withCpu(measured, count, async () => {
    if (rate === null) await setPaused(field, quotes, true);
    const begin = () => ([fromMs, loopMs] = [monotonicMs(), loops()]);
    begin();
    const moments = await feed(field, quotes, count, rate);
    if (rate === null) {
      begin();
      await setPaused(field, quotes, false);
    }
    untilMs = await arrivals.all(
      moments.map(([eventId]) => eventId),
      limits.limit * 1_000,
    );
    loopShare = (loops() - loopMs) / (monotonicMs() - fromMs) / workers.length;
    await recorded(field.ground);
    await pause(REST_MS);
    return moments;
  });
  const [ours, theirs] = await Promise.all(waits.map((end) => end()));
  const arrived = committed.flatMap(([eventId, at]) => {
    const arrivedMs = arrivals.at.get(eventId);
    return arrivedMs === undefined ? [] : [arrivedMs - at];
  });
  const lost = count - arrived.length;
  if (lost > 0) await forget(field.ground);
  const paths = difference(pathsBefore, await pathsOf(workers));
  const started = [...paths.values()].reduce((sum, one) => sum + one, 0);
  const parts = ofParts(cpu);
  const { worst_ms: _, ...times } = spread(arrived);
  const cell = {
    workers: workers.length,
    endpoints,
    rate,
    per_second: arrived.length / ((untilMs - fromMs) / 1_000),
    ...times,
    // Receivers belong to partners.
    cpu_ms: Object.entries(parts).reduce((sum, [name, ms]) => (name === 'receiver' ? sum : sum + ms), 0),
    fast_share: (paths.get('fast') ?? 0) / started,
    lost,
  };
  const waited = `ours: ${ours}; Temporal's: ${theirs}`;
  return {
    cell,
    beside: { cpu: parts, loopShare, paths: JSON.stringify(Object.fromEntries(paths)), waits: waited },
  };
}

/** Stores so many changes, each feeder its share. @returns when each was committed. */
async function feed(
  { feeders, service }: Field,
  quotes: Field['quotes'],
  count: number,
  rate: number | null,
): Promise<Fed['committed']> {
  const answers = feeders.map(async (feeder, at) => {
    const own = quotes.filter((_, nth) => nth % feeders.length === at % quotes.length);
    const message: Feed = {
      service,
      quoteIds: own.map(({ quoteId }) => quoteId),
      count: Math.floor((count + at) / feeders.length),
      perSecond: rate === null ? null : rate / feeders.length,
    };
    const answer = nextMessage<Fed>(feeder);
    feeder.send(message);
    return (await answer).committed;
  });
  return (await Promise.all(answers)).flat();
}

function watchArrivals({ groups }: Ground) {
  const at = new Map<string, number>();
  for (const { receivers } of groups) {
    receivers.arrivals.clear();
    receivers.onArrival = (eventId) => {
      at.set(eventId, receivers.arrivals.get(eventId) ?? Number.NaN);
    };
  }
  return {
    at,
    /** Waits until all of these have arrived, but no longer than this. @returns when the last one did. */
    async all(eventIds: readonly string[], limitMs: number): Promise<number> {
      const missing = new Set(eventIds.filter((eventId) => !at.has(eventId)));
      const deadlineMs = monotonicMs() + limitMs;
      while (missing.size > 0 && monotonicMs() < deadlineMs) {
        await pause(5);
        for (const eventId of missing) if (at.has(eventId)) missing.delete(eventId);
      }
      const moments = eventIds.flatMap((eventId) => at.get(eventId) ?? []);
      return moments.reduce((latest, one) => Math.max(latest, one), 0);
    },
  };
}

/** Pauses the deliveries to all of these partners, or resumes them, with one commit. */
async function setPaused({ ground }: Field, quotes: Field['quotes'], paused: boolean): Promise<void> {
  const { sql } = ground.database;
  const partners = quotes.map(({ partnerId }) => partnerId);
  if (paused)
    await sql`
      insert into delivery_pauses (partner_id, environment, paused_by)
      select id, 'live', 'bench' from unnest(${partners}::text[]) id`;
  else {
    await sql`update delivery_pauses set resumed_at = service_now(), resumed_by = 'bench' where resumed_at is null`;
    hint(sql, SOMETHING_IS_DUE);
  }
}

/** Waits until every delivery has been recorded. */
async function recorded({ database }: Ground): Promise<void> {
  const deadlineMs = monotonicMs() + RECORDED_WITHIN_MS;
  while (monotonicMs() < deadlineMs) {
    const [left] = await database.sql`select /* bench */ 1 from deliveries limit 1`;
    if (left === undefined) return;
    await pause(20);
  }
}

/** Cancels what is left of a cell, so that the next one is not measured beside it. */
async function forget({ database }: Ground): Promise<void> {
  // Workers lock a notification before its delivery.
  await database.sql`
    with left_over as (
      select n.notification_id from notifications n join deliveries using (notification_id)
      order by n.notification_id for update of n),
    gone as (
      delete from deliveries d using left_over l where d.notification_id = l.notification_id
      returning d.notification_id)
    update notifications n set end_state = 'cancelled', end_reason = 'operator', ended_at = service_now()
    from gone where n.notification_id = gone.notification_id`;
}

async function pathsOf(workers: readonly StartedWorker[]): Promise<ReadonlyMap<string, number>> {
  const all = new Map<string, number>();
  for (const paths of await Promise.all(workers.map(({ port }) => startsByPath(port))))
    for (const [path, count] of paths) all.set(path, (all.get(path) ?? 0) + count);
  return all;
}

const difference = (before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>) =>
  new Map([...after].map(([path, count]) => [path, count - (before.get(path) ?? 0)]));

/** The CPU of processes of a kind together: `worker_1_cpu_ms` and `worker_2_cpu_ms` are `worker`. */
function ofParts(cpu: Figures): Record<string, number> {
  const parts: Record<string, number> = {};
  for (const [name, ms] of Object.entries(cpu)) {
    const part = name.replace(/(_\d+)?_cpu_ms$/, '');
    parts[part] = (parts[part] ?? 0) + ms;
  }
  return parts;
}
