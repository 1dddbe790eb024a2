import { setTimeout as sleep } from 'node:timers/promises';
import { noKills } from '../killer';
import { attemptsUnderWay, openNotifications } from '../stored';
import { runTester } from '../tester';
import { untilReady } from '../../../scripts/cluster/bring-up';
import { untilTrue } from '../../../scripts/cluster/machine';
import type { Blow } from './blows';
import { startLoad } from './load';
import type { ClusterScene } from './scene';

/** Time with nothing wrong before each blow, and after the last. */
const CALM_MS = 4_000;
const WHOLE_MS = 240_000;
/** How long all may take to be delivered once nothing is killed any more. */
const END_MS = 240_000;

export type StormRun = Awaited<ReturnType<typeof runStorm>>;

/** Load from beginning to end, one blow after the other, each when the cluster is whole again. */
export async function runStorm(scene: ClusterScene, blows: readonly Blow[], say: (text: string) => void) {
  const kills = noKills();
  const pauses: { readonly blow: Blow; readonly quotesS: number; readonly deliveriesS: number }[] = [];
  const tester = runTester(scene);
  const load = startLoad(scene);
  try {
    await untilTrue(
      'quotes and deliveries flow',
      60_000,
      () => load.quotes.length > 20 && scene.receiver.received.length > 5,
    );
    await sleep(CALM_MS);
    const stormMs = performance.now();
    for (const blow of blows) {
      kills.attemptsUnderWay += await attemptsUnderWay(scene).catch(() => 0);
      const fromMs = performance.now();
      await blow.strike(scene, load);
      kills.counts[blow.victim] = (kills.counts[blow.victim] ?? 0) + 1;
      await whole(scene);
      await sleep(CALM_MS);
      // After etcd's return Patroni lists the synchronous standby of before, then none for some seconds.
      await whole(scene);
      const quotesS = load.quoteTimes.longestPauseS(fromMs);
      const deliveriesS = scene.deliveries.longestPauseS(fromMs);
      pauses.push({ blow, quotesS, deliveriesS });
      const seconds = Math.round((performance.now() - fromMs) / 1_000);
      say(
        `${blow.what}: ${quotesS} s without quotes, ${deliveriesS} s without deliveries; whole again after ${seconds} s`,
      );
    }
    const longestWithoutQuotesS = load.quoteTimes.longestPauseS(stormMs);
    const longestDeliveryPauseS = scene.deliveries.longestPauseS(stormMs);
    const promised = await load.stop();
    const tested = await tester.stop(120_000);
    const ended = () =>
      openNotifications(scene).then(
        (open) => open === 0,
        () => false,
      );
    // The invariants name what is still open.
    await untilTrue('everything is delivered', END_MS, ended).catch((error: Error) => say(error.message));
    // The two longest pauses: over the whole storm, in seconds.
    return { load, promised, tested, kills, pauses, longestWithoutQuotesS, longestDeliveryPauseS };
  } finally {
    await tester.stop(0);
  }
}

/** All that an operator would want before he calls it over: and before anything else is killed, so that no blow meets another. */
async function whole({ cluster: { patroni } }: ClusterScene): Promise<void> {
  await untilTrue('Postgres has a leader and a synchronous standby', WHOLE_MS, () => patroni.isWhole());
  await untilReady(WHOLE_MS);
}
