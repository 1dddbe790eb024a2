import { generateWebhookSecret } from '../db/endpoints/secrets';
import { countSteps, prepareCounting } from './delivery/steps';
import { runRound, WAYS, type Feeding, type Way } from './delivery/ways';
import { runBench } from './harness/bench';
import { nextMessage, startChild } from './harness/children';
import { say } from '../testbed/say';
import { figure, medianRatio, medians, takeTurns, type Figures } from './harness/rounds';
import { openStage } from './harness/stage';

/**
 * `npm run bench:delivery`: the delivery path, from the row's commit to the recorded outcome, against the best that the engine can do
 * on the same Temporal server, a real one on Postgres: a bare workflow with one local activity that signs and POSTs, started eagerly.
 * See docs/operations/speed.md.
 */
const OPTIONS = {
  /** Rounds of each way, loaded and unloaded. */
  rounds: 5,
  /** Notifications per loaded round: three to six seconds on two slow cores. */
  count: 400,
  /** Notifications per unloaded round, one after the other. */
  unloaded: 60,
  'in-flight': 64,
};

/** Enough for every endpoint to be known as fast, and for the code to be compiled. */
const WARM_UP = 250;
/** Deliveries of each way whose statements are counted. */
const COUNTED = 100;

runBench('delivery', OPTIONS, async (bench, options) => {
  const stage = await openStage(bench, { countsStatements: true });
  await prepareCounting(stage);
  const bare = startChild(bench, 'bench/delivery/bare-worker.ts', {
    args: [generateWebhookSecret(), ...stage.receivers.urls],
    env: stage.environment,
  });
  await nextMessage(bare);

  const round = async (way: Way, feeding: Feeding) => runRound(stage, bare, way, feeding);
  const everyWay = async (feeding: Feeding) => {
    const rounds = WAYS.map((way) => [way, () => round(way, feeding)] as const);
    return takeTurns(options.rounds, Object.fromEntries(rounds) as Record<Way, () => Promise<Figures>>);
  };
  say('warming up');
  for (const way of WAYS) {
    const warm = await round(way, { count: WARM_UP, inFlight: 64, restMs: 0 });
    say(`${way}: ${figure(warm, 'per_second').toFixed(0)} per second`);
  }
  say('unloaded: one at a time');
  const unloaded = await everyWay({ count: options.unloaded, inFlight: 1, restMs: 20 });
  const inFlight = options['in-flight'];
  say(`${inFlight} in flight`);
  const loaded = await everyWay({ count: options.count, inFlight, restMs: 0 });
  say('counting history events and statements');
  const columns: Partial<Record<Way, Figures>> = {};
  for (const way of WAYS) {
    const run = async () => round(way, { count: COUNTED, inFlight: 16, restMs: 0 });
    const steps = await countSteps(stage, way, { count: COUNTED, run });
    const { per_second: perSecond = Number.NaN, ...busy } = medians(loaded[way]);
    const cpu = Object.entries(busy).filter(([name]) => name.endsWith('_cpu_ms'));
    const { p50_ms: p50 = Number.NaN, p99_ms: p99 = Number.NaN } = medians(unloaded[way]);
    columns[way] = {
      [`per_second_${inFlight}`]: perSecond,
      p50_ms: p50,
      p99_ms: p99,
      ...Object.fromEntries(cpu),
      ...steps,
    };
  }
  const figures = {
    [`throughput_ratio_best_${inFlight}`]: medianRatio(loaded.ours, loaded.best, 'per_second'),
    cpu_ratio_best: medianRatio(loaded.ours, loaded.best, allCpu),
    latency_p50_ratio_best: medianRatio(unloaded.ours, unloaded.best, 'p50_ms'),
  };
  return { figures, columns };
});

/** CPU of all that takes part, the storing of the change included. */
function allCpu(round: Figures): number {
  const names = Object.keys(round).filter((name) => name.endsWith('_cpu_ms'));
  return names.reduce((sum, name) => sum + figure(round, name), 0);
}
