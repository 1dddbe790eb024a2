import type { Steps } from '../../bench/delivery/counting';
import { jsonFigures, summarise, table } from '../../bench/delivery/figures';
import { latencies, WAYS, type Round, type Turn } from '../../bench/delivery/rounds';

const cpu = { temporal: 5, temporalPostgres: 4, ourPostgres: 2, worker: 8, feeder: 1 };
const round = (perSecond: number, p50Ms: number, worker = 8): Round => ({
  perSecond,
  p50Ms,
  p99Ms: 2 * p50Ms,
  cpu: { ...cpu, worker },
});
const turn = (regular: Round, ours: Round, local: Round): Turn => ({
  regular,
  ours,
  local,
  standalone: round(2 * local.perSecond, local.p50Ms),
});
const steps: Steps = { historyEvents: 6, temporalStatements: 40, ourStatements: 10, localShare: 0.5 };
const isolation = { withoutMs: 20, withMs: 23, shift: 0.15 };
const overtake = { due: 5_000, left: 4_700, withoutMs: 20, medianMs: 60, worstMs: 140 };

function figures() {
  // The machine was half as fast in the second round, and paused in the third round of ours.
  const loaded = [
    turn(round(50, 1), round(60, 1), round(80, 1, 4)),
    turn(round(25, 1), round(30, 1), round(40, 1, 4)),
    turn(round(50, 1), round(10, 1), round(80, 1, 3)),
  ];
  const unloaded = [turn(round(1, 20), round(1, 18), round(1, 12))];
  return summarise(
    loaded,
    unloaded,
    { regular: steps, ours: steps, local: steps, standalone: steps },
    { isolation, overtake },
  );
}

test('a ratio is the median of the rounds, each held against its neighbours', () => {
  const { throughputRatio, throughputRatioBest, latencyRatio, latencyRatioBest, cpuRatioBest, ways } =
    figures();
  expect(throughputRatio).toBeCloseTo(1.2);
  expect(throughputRatioBest).toBeCloseTo(0.75);
  expect(latencyRatio).toBeCloseTo(0.9);
  expect(latencyRatioBest).toBeCloseTo(1.5);
  // 20 / 16 twice, and 20 / 15.
  expect(cpuRatioBest).toBeCloseTo(1.25);
  expect(ways.ours).toMatchObject({ perSecond: 30, p50Ms: 18, p99Ms: 36, cpu, steps });
});

test('the JSON object holds the figures that are judged, and every absolute one by way', () => {
  const object = jsonFigures(figures());
  expect(object).toMatchObject({
    throughput_ratio_64: 1.2,
    throughput_ratio_best_64: 0.75,
    throughput_ratio_standalone_64: 0.375,
    cpu_ratio_best: 1.25,
    latency_p50_ratio: 0.9,
    latency_p50_ratio_best: 1.5,
    isolation_p95_shift: 0.15,
    overtake_p50_without_ms: 20,
    overtake_p50_ms: 60,
    overtake_worst_ms: 140,
    ours_per_second_64: 30,
    ours_our_statements: 10,
    ours_local_share: 0.5,
  });
  for (const way of ['bare', 'ours', 'best', 'standalone']) {
    for (const what of [
      'per_second_64',
      'p50_ms',
      'p99_ms',
      'worker_cpu_ms',
      'temporal_cpu_ms',
      'history_events',
    ])
      expect(object[`${way}_${what}`]).toEqual(expect.any(Number));
  }
  expect(JSON.parse(JSON.stringify(object))).toEqual(object);
});

test('the table has a line for each way and one for each ratio', () => {
  const lines = table(figures()).split('\n');
  expect(lines.filter((line) => /^\([abcd]\)/.test(line))).toHaveLength(WAYS.length);
  expect(lines.at(-2)).toContain('23 ms, without 20 ms (15 %)');
  expect(lines.at(-1)).toContain('60 ms, the slowest 140 ms');
});

test('latencies run from each start to the arrival of its own event', () => {
  const started = Array.from({ length: 100 }, (_, at) => [`evt_${at}`, at * 10] as const);
  // The nth takes n + 1 milliseconds.
  const arrivals = new Map(started.map(([eventId, at], n) => [eventId, at + n + 1]));
  expect(latencies(started, arrivals)).toEqual({ p50Ms: 51, p95Ms: 96, p99Ms: 100 });
  arrivals.delete('evt_7');
  expect(() => latencies(started, arrivals)).toThrow('evt_7 never arrived');
});
