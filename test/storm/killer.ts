import { setTimeout as sleep } from 'node:timers/promises';
import { quoteOf } from './asking';
import type { StormScene } from './scene';
import { attemptsUnderWay } from './stored';

export type Victim = 'api' | 'worker' | 'temporal' | 'postgres';

/** What was done to the service. */
export interface Kills {
  readonly counts: Record<Victim, number> & Record<string, number>;
  /** Attempts that were under way when something was killed, summed up over all kills. */
  attemptsUnderWay: number;
  /** Quotes that were answered 200 while Temporal was down, of so many that were asked for. */
  readonly withoutTemporal: { asked: number; answered: number };
}

export const noKills = (): Kills => ({
  counts: { api: 0, worker: 0, temporal: 0, postgres: 0 },
  attemptsUnderWay: 0,
  withoutTemporal: { asked: 0, answered: 0 },
});

/** kill -9, a while of absence, and up again: ready for its work when this resolves. */
export async function killOne(
  scene: StormScene,
  victim: Victim,
  kills: Kills,
  next: () => number,
): Promise<void> {
  const absenceMs = 200 + next() * 1_500;
  kills.attemptsUnderWay += await attemptsUnderWay(scene);
  kills.counts[victim] += 1;
  switch (victim) {
    case 'api': {
      const at = Math.floor(next() * scene.apis.length);
      await scene.apis[at]?.end('SIGKILL');
      await sleep(absenceMs);
      return scene.startApi(at);
    }
    case 'worker': {
      const at = Math.floor(next() * scene.workers.length);
      await scene.workers[at]?.end('SIGKILL');
      await sleep(absenceMs);
      await scene.startWorker(at);
      return scene.workers[at]?.ready(120_000);
    }
    case 'temporal': {
      await scene.temporal.kill();
      await askWithoutTemporal(scene, kills);
      await sleep(absenceMs);
      return scene.temporal.start();
    }
    case 'postgres': {
      await scene.postgres.kill();
      await sleep(absenceMs);
      await scene.postgres.start();
      // Each connection of our own pool finds out once that it is gone.
      const ask = () => scene.database.sql`select 1`.catch(() => undefined);
      return void (await Promise.all(Array.from({ length: 12 }, ask)));
    }
  }
}

export async function askWithoutTemporal(scene: StormScene, { withoutTemporal }: Kills): Promise<void> {
  for (let times = 0; times < 3; times += 1) {
    const answer = await scene.ask(quoteOf(scene.tester));
    withoutTemporal.asked += 1;
    if (answer?.status === 200) withoutTemporal.answered += 1;
  }
}
