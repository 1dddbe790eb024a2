import { median } from '../rounds';
import type { Steps } from './counting';
import type { Isolation } from './isolation';
import type { Overtake } from './overtake';
import { eachCpu, WAYS, type DeliveryCpu, type Round, type Turn, type Way } from './rounds';

/** Medians of one way's rounds, and what a delivery takes in steps. */
export interface WayFigures {
  readonly perSecond: number;
  /** CPU milliseconds per delivery at full load. */
  readonly cpu: DeliveryCpu;
  /** Unloaded, milliseconds. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly steps: Steps;
}

/** All that the bench found. Ratios are medians of the rounds' ratios. */
export interface DeliveryFigures {
  readonly ways: Readonly<Record<Way, WayFigures>>;
  /** Ours to (a), at 64 in flight. */
  readonly throughputRatio: number;
  /** Ours to (c). */
  readonly throughputRatioBest: number;
  /** Ours to (d). */
  readonly throughputRatioStandalone: number;
  /** Ours to (c): CPU of all that takes part, storing the change included. */
  readonly cpuRatioBest: number;
  /** Ours to (a), unloaded. */
  readonly latencyRatio: number;
  /** Ours to (c), unloaded. */
  readonly latencyRatioBest: number;
  readonly isolation: Isolation;
  readonly overtake: Overtake | null;
}

export function summarise(
  loaded: readonly Turn[],
  unloaded: readonly Turn[],
  steps: Readonly<Record<Way, Steps>>,
  { isolation, overtake }: Pick<DeliveryFigures, 'isolation' | 'overtake'>,
): DeliveryFigures {
  const figures = (way: Way): WayFigures => {
    const of = (turns: readonly Turn[], pick: (round: Round) => number) =>
      median(turns.map((turn) => pick(turn[way])));
    return {
      perSecond: of(loaded, (round) => round.perSecond),
      cpu: eachCpu((name) => of(loaded, (round) => round.cpu[name])),
      p50Ms: of(unloaded, (round) => round.p50Ms),
      p99Ms: of(unloaded, (round) => round.p99Ms),
      steps: steps[way],
    };
  };
  return {
    ways: {
      regular: figures('regular'),
      ours: figures('ours'),
      local: figures('local'),
      standalone: figures('standalone'),
    },
    throughputRatio: median(loaded.map(({ ours, regular }) => ours.perSecond / regular.perSecond)),
    throughputRatioBest: median(loaded.map(({ ours, local }) => ours.perSecond / local.perSecond)),
    throughputRatioStandalone: median(
      loaded.map(({ ours, standalone }) => ours.perSecond / standalone.perSecond),
    ),
    cpuRatioBest: median(loaded.map(({ ours, local }) => allCpu(ours.cpu) / allCpu(local.cpu))),
    latencyRatio: median(unloaded.map(({ ours, regular }) => ours.p50Ms / regular.p50Ms)),
    latencyRatioBest: median(unloaded.map(({ ours, local }) => ours.p50Ms / local.p50Ms)),
    isolation,
    overtake,
  };
}

const allCpu = ({ temporal, temporalPostgres, ourPostgres, worker, feeder }: DeliveryCpu) =>
  temporal + temporalPostgres + ourPostgres + worker + feeder;

/** The object of `--json`: the figures that are judged, then every absolute one. */
export function jsonFigures(found: DeliveryFigures): Record<string, number> {
  const object: Record<string, number> = {};
  const put = (name: string, value: number) => (object[name] = Math.round(value * 1_000) / 1_000);
  put('throughput_ratio_64', found.throughputRatio);
  put('throughput_ratio_best_64', found.throughputRatioBest);
  put('throughput_ratio_standalone_64', found.throughputRatioStandalone);
  put('cpu_ratio_best', found.cpuRatioBest);
  put('latency_p50_ratio', found.latencyRatio);
  put('latency_p50_ratio_best', found.latencyRatioBest);
  put('isolation_p95_shift', found.isolation.shift);
  put('isolation_p95_without_ms', found.isolation.withoutMs);
  put('isolation_p95_with_ms', found.isolation.withMs);
  put('overtake_p50_without_ms', found.overtake?.withoutMs ?? NaN);
  put('overtake_p50_ms', found.overtake?.medianMs ?? NaN);
  put('overtake_worst_ms', found.overtake?.worstMs ?? NaN);
  for (const way of WAYS) {
    const { perSecond, cpu, p50Ms, p99Ms, steps } = found.ways[way];
    const name = NAMES[way].json;
    put(`${name}_per_second_64`, perSecond);
    put(`${name}_p50_ms`, p50Ms);
    put(`${name}_p99_ms`, p99Ms);
    put(`${name}_temporal_cpu_ms`, cpu.temporal);
    put(`${name}_temporal_postgres_cpu_ms`, cpu.temporalPostgres);
    put(`${name}_our_postgres_cpu_ms`, cpu.ourPostgres);
    put(`${name}_worker_cpu_ms`, cpu.worker);
    put(`${name}_feeder_cpu_ms`, cpu.feeder);
    put(`${name}_history_events`, steps.historyEvents);
    put(`${name}_temporal_statements`, steps.temporalStatements);
    put(`${name}_our_statements`, steps.ourStatements);
    put(`${name}_local_share`, steps.localShare);
  }
  return object;
}

const NAMES: Readonly<Record<Way, { readonly json: string; readonly table: string }>> = {
  regular: { json: 'bare', table: '(a) bare, regular activity' },
  ours: { json: 'ours', table: '(b) ours' },
  local: { json: 'best', table: '(c) bare, local, eager' },
  standalone: { json: 'standalone', table: '(d) activity, no workflow' },
};

const COLUMNS = [
  'per s at 64',
  'p50 ms',
  'p99 ms',
  'Temporal',
  'its PG',
  'our PG',
  'worker',
  'feeder',
  'events',
  'SQL theirs',
  'SQL ours',
  'local',
];

/** The table that people read. */
export function table(found: DeliveryFigures): string {
  const rows = WAYS.map((way) => {
    const { perSecond, cpu, p50Ms, p99Ms, steps } = found.ways[way];
    const cpus = [cpu.temporal, cpu.temporalPostgres, cpu.ourPostgres, cpu.worker, cpu.feeder];
    const { historyEvents, temporalStatements, ourStatements, localShare } = steps;
    return line(NAMES[way].table, [
      perSecond.toFixed(0),
      p50Ms.toFixed(1),
      p99Ms.toFixed(1),
      ...cpus.map((ms) => ms.toFixed(2)),
      historyEvents.toFixed(1),
      temporalStatements.toFixed(1),
      ourStatements.toFixed(1),
      `${(localShare * 100).toFixed(0)} %`,
    ]);
  });
  const { isolation, overtake } = found;
  return [
    `${' '.repeat(27)}${' '.repeat(33)}CPU ms per delivery at 64${' '.repeat(19)}per delivery`,
    line('', COLUMNS),
    ...rows,
    '',
    `throughput at 64 in flight: ours / (a) ${found.throughputRatio.toFixed(2)}, ours / (c) ${found.throughputRatioBest.toFixed(2)}, ours / (d) ${found.throughputRatioStandalone.toFixed(2)}`,
    `CPU per delivery: ours / (c) ${found.cpuRatioBest.toFixed(2)}`,
    `unloaded p50: ours / (a) ${found.latencyRatio.toFixed(2)}, ours / (c) ${found.latencyRatioBest.toFixed(2)}`,
    `other partners' p95 with one endpoint hanging: ${isolation.withMs.toFixed(0)} ms, without ${isolation.withoutMs.toFixed(0)} ms (${(isolation.shift * 100).toFixed(0)} %)`,
    ...(overtake === null ? [] : [overtakeLine(overtake)]),
  ].join('\n');
}

function overtakeLine({ due, left, withoutMs, medianMs, worstMs }: Overtake): string {
  return `others' while ${due} are due to one partner (${left} were left): p50 ${medianMs.toFixed(0)} ms, the slowest ${worstMs.toFixed(0)} ms; without p50 ${withoutMs.toFixed(0)} ms`;
}

function line(name: string, cells: readonly string[]): string {
  return `${name.padEnd(27)}${cells.map((cell) => cell.padStart(11)).join('')}`;
}
