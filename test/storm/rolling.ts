import { setTimeout as sleep } from 'node:timers/promises';
import { delays } from './findings';
import { random } from '../support/random';
import { killOne, noKills } from './killer';
import { runLenders } from './lenders';
import { conclude, type StormEnd } from './run';
import { killableProductionTemporal } from '../support/production-temporal';
import { openStorm } from './scene';
import { PATIENCE_MS, runTester } from './tester';

export interface RollingPlan {
  readonly minutes: number;
  /** How long a minute takes here, in milliseconds. */
  readonly minuteMs: number;
  readonly applications: number;
  readonly lenders: number;
  readonly seed: number;
  readonly say: (text: string) => void;
}

/** A steady load, while each minute one of four workers is killed with kill -9 and started again. */
export async function runRolling(plan: RollingPlan): Promise<StormEnd & { readonly p99Ms: number }> {
  const { minutes, minuteMs, applications, lenders, say } = plan;
  const scene = await openStorm({
    partners: 4,
    apis: 1,
    workers: 4,
    openTemporal: killableProductionTemporal,
  });
  const tester = runTester(scene);
  try {
    const kills = noKills();
    const next = random(plan.seed);
    const startedAt = performance.now();
    const pauseMs = (minutes * minuteMs * lenders) / applications;
    const load = runLenders(scene, { applications, atOnce: lenders, pauseMs });
    load.catch(() => undefined);
    for (let minute = 1; minute <= minutes; minute += 1) {
      const until = startedAt + minute * minuteMs;
      await killOne(scene, 'worker', kills, next);
      await sleep(Math.max(until - performance.now(), 0));
      say(`minute ${minute}: ${scene.receiver.received.length} requests received`);
    }
    const seconds = () => Math.round((performance.now() - startedAt) / 1_000);
    const record = { promised: await load, tested: await tester.stop(PATIENCE_MS), kills };
    const end = await conclude(scene, record, 120_000, seconds);
    return { ...end, p99Ms: (await delays(scene)).p99 };
  } finally {
    await tester.stop(0);
    await scene.close();
  }
}
