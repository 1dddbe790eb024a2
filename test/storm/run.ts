import { setTimeout as sleep } from 'node:timers/promises';
import { delays, findings, reportText, type StormRecord } from './findings';
import { random, shuffled } from '../support/random';
import { killOne, noKills, type Victim } from './killer';
import { runLenders } from './lenders';
import { openStorm, type StormOptions, type StormScene } from './scene';
import { openNotifications } from './stored';
import { PATIENCE_MS, runTester } from './tester';

export interface StormPlan extends StormOptions {
  readonly applications: number;
  /** Lenders at work at once. */
  readonly lenders: number;
  readonly kills: Readonly<Record<Victim, number>>;
  /** Mean time between two kills, in milliseconds; each is between half and one and a half of it. */
  readonly pauseMs: number;
  /** Pause of each lender between two applications, in milliseconds. */
  readonly lenderPauseMs?: number;
  readonly seed: number;
  /** How long all may take to be delivered once the lenders are done and nothing is killed any more. */
  readonly timeoutMs: number;
  readonly say: (text: string) => void;
}

/** Applications in flight while processes are killed at random; then every invariant is looked at. */
export async function runStorm(plan: StormPlan) {
  const scene = await openStorm(plan);
  const tester = runTester(scene);
  try {
    const kills = noKills();
    const next = random(plan.seed);
    const startedAt = performance.now();
    const seconds = () => Math.round((performance.now() - startedAt) / 1_000);
    const { applications, lenders: atOnce, lenderPauseMs: pauseMs = 0 } = plan;
    const lenders = runLenders(scene, { applications, atOnce, pauseMs });
    // Looked at once the kills are over; a failure must not end the process before.
    lenders.catch(() => undefined);
    const victims = Object.entries(plan.kills) as [Victim, number][];
    const each = victims.flatMap(([victim, times]) => Array.from({ length: times }, () => victim));
    for (const victim of shuffled(each, next)) {
      await sleep(plan.pauseMs * (0.5 + next()));
      await killOne(scene, victim, kills, next);
      plan.say(`${seconds()} s: ${victim} killed and back; ${await standing(scene)}`);
    }
    const promised = await lenders;
    plan.say(`${seconds()} s: ${promised.length} applications told; ${await standing(scene)}`);
    const tested = await tester.stop(PATIENCE_MS);
    return await conclude(scene, { promised, tested, kills }, plan.timeoutMs, seconds);
  } finally {
    await tester.stop(0);
    await scene.close();
  }
}

/**
 * Waits until all are delivered, and holds the invariants against what was seen.
 * @returns also the 99th percentile of the time from a change to its delivery, in milliseconds
 */
export async function conclude(
  scene: StormScene,
  record: StormRecord,
  timeoutMs: number,
  seconds: () => number,
) {
  // What is still open then is in the report.
  const until = performance.now() + timeoutMs;
  while ((await openNotifications(scene)) > 0 && performance.now() < until) await sleep(500);
  const took = seconds();
  const all = await findings(scene, record);
  const { p50, p99, most } = await delays(scene);
  const killed = Object.entries(record.kills.counts)
    .map(([victim, times]) => `${victim} ${times}`)
    .join(', ');
  const report = [
    `${record.promised.length} applications, ${scene.receiver.received.length} requests in ${took} s; killed with kill -9: ${killed}`,
    reportText(all),
    `delay from change to delivery: p50 ${inSeconds(p50)}, p99 ${inSeconds(p99)}, longest ${inSeconds(most)}`,
  ].join('\n');
  return { findings: all, report, p99Ms: p99 };
}

const inSeconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

async function standing(scene: StormScene): Promise<string> {
  return `${scene.receiver.received.length} requests received, ${await openNotifications(scene)} notifications open`;
}
