import { until } from '../support/delivery';
import { testTemporal } from '../support/temporal';
import { openReleases, type Releases } from './releases';

const temporal = testTemporal();
const PINNED = { WORKER_VERSIONING: 'pinned' };
let releases: Releases;
beforeAll(async () => {
  releases = await openReleases(temporal);
}, 300_000);
afterAll(() => releases.close());

test('a pinned delivery ends on the build that it began on, and waits while that has no worker', async () => {
  const { scene, release, setCurrent, deployment, notify, attempts, builds, rowOf } = releases;
  expect(await deployment()).toEqual({ current: null, ramping: null, builds: [] });
  scene.receiver.behave(() => 503);
  const one = await release('one', PINNED);
  await one.ready();
  await setCurrent('one');
  const early = await notify();
  await until(async () => (await attempts(early.id)) > 0, 'an attempt of build one', 60_000);

  const two = await release('two', PINNED);
  await two.ready();
  await setCurrent('two');
  // Until it has heard of that, build one starts deliveries of its own.
  for (const [worker, current] of [
    [one, 0],
    [two, 1],
  ] as const)
    await until(
      async () => (await worker.metrics()).includes(`\npfqs_worker_build_current ${current}\n`),
      'both know which build is current',
    );
  const before = await attempts(early.id);
  const late = await notify();
  await until(async () => (await attempts(late.id)) > 0, 'an attempt of build two', 60_000);
  await until(async () => (await attempts(early.id)) > before + 1, 'build one goes on', 60_000);
  expect([await builds(early.handle), await builds(late.handle)]).toEqual([['one'], ['two']]);
  expect((await deployment()).builds).toContainEqual({ buildId: 'one', status: 'draining' });

  expect(await one.end('SIGTERM')).toBe(0);
  scene.receiver.behave(() => 200);
  await until(async () => (await rowOf(late.id))?.state === 'delivered', 'build two delivers', 60_000);
  expect(await rowOf(early.id)).toMatchObject({ state: 'started' });
  await release('one', PINNED);
  expect((await scene.ended()).map(({ state }) => state)).toEqual(['delivered', 'delivered']);
  expect([await builds(early.handle), await builds(late.handle)]).toEqual([['one'], ['two']]);
  expect(await scene.counts()).toEqual([{ delivered: 2, failed: 0, reserved: 0 }]);
  await scene.expectInvariants({ kills: 0 });
}, 180_000);
