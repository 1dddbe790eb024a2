import { Client } from '@temporalio/client';
import { useCrashScene } from '../support/crash-scene';
import type { Standing } from '../../testbed/notifications';
import { until } from '../../testbed/until';
import { PATHS } from '../support/fast-path';
import { deliveryOf, starterOf } from '../support/histories';
import { randomTaskQueue, testTemporal } from '../support/temporal';

const temporal = testTemporal();
const OTHERS = ['P100002', 'P100003', 'P100004'];
const scene = useCrashScene(() => ({ temporal, others: OTHERS }));

const attemptsOf = async () => (await scene.rows()).map(({ attempts }) => attempts.join());

test('all workers down for a while: nothing is lost, overdue waits end at once, and each says how late it was', async () => {
  const partners = [scene.partnerId, ...OTHERS];
  const victim = await scene.worker({ TEST_LADDER_SECONDS: '0,5' });
  scene.receiver.behave((nth) => (nth < partners.length ? 503 : 200));
  for (const partnerId of partners) await scene.storeTest(partnerId);
  await until(
    async () => (await attemptsOf()).join() === 'failed,failed,failed,failed',
    'every ladder waits',
  );
  const waiting = await scene.rows();
  const waits = async ({ id }: Standing) => {
    const { events } = await deliveryOf(temporal.client, id).fetchHistory();
    return events?.some(({ timerStartedEventAttributes: timer }) => timer);
  };
  await until(async () => (await Promise.all(waiting.map(waits))).every(Boolean), 'each has its timer');
  await victim.end('SIGKILL');
  for (let times = 0; times < 15; times += 1)
    for (const partnerId of partners) await scene.storeTest(partnerId);
  // The longest wait of the ladders is 10 s: they become due while nobody is there, and are late by ten seconds more.
  await new Promise((resolve) => setTimeout(resolve, 21_000));
  expect((await scene.rows()).filter(({ state }) => state === 'queued')).toHaveLength(60);

  await scene.worker({ TEST_LADDER_SECONDS: '0,1' });
  const rows = await scene.ended(90_000);
  expect(rows.filter(({ state }) => state === 'delivered')).toHaveLength(64);
  expect(await attemptsOf()).toEqual([
    ...Array.from({ length: 4 }, () => 'failed,delivered'),
    ...Array.from({ length: 60 }, () => 'delivered'),
  ]);
  expect(scene.receiver.received).toHaveLength(68);
  for (const { id } of waiting) {
    const { log } = await deliveryOf(temporal.client, id).query<{ log: string[] }>('progress');
    expect(log[1]).toMatch(/Z attempt 2 [1-9]\d(\.\d)? s late: no worker took it up, or Temporal was away$/);
  }
  expect(await scene.counts()).toEqual(partners.map(() => ({ delivered: 16, failed: 0, reserved: 0 })));
  await scene.expectInvariants({ kills: 1 });
}, 240_000);

test.each(PATHS)(
  'SIGHUP changes nothing; SIGTERM during a delivery: it is finished, the process leaves with 0, and nothing is sent twice (%s)',
  async (path) => {
    const leaving = await scene.worker({}, path);
    let answer = () => {};
    scene.receiver.behave(() => (response) => void (answer = () => response.writeHead(200).end()));
    await scene.storeTest();
    await until(() => scene.receiver.received.length === 1, 'the event arrives');
    leaving.child.kill('SIGHUP');
    await until(() => leaving.output().includes('SIGHUP: nothing to do'), 'it has heard it');
    const code = leaving.end('SIGTERM');
    // Longer than a workflow task may take without a sign of life (10 s).
    await new Promise((resolve) => setTimeout(resolve, path === 'fast' ? 12_000 : 3_000));
    expect(leaving.child.exitCode).toBeNull();
    answer();
    expect(await code).toBe(0);

    await scene.worker();
    await scene.expectDelivered(['delivered'], { path });
    expect(scene.receiver.received).toHaveLength(1);
  },
  180_000,
);

test('two workers at once: each notification is started and sent once', async () => {
  const workers = [await scene.worker(), await scene.worker()];
  await Promise.all(workers.map((worker) => worker.ready()));
  await Promise.all(Array.from({ length: 30 }, () => scene.storeTest()));
  const ended = await scene.ended(90_000);
  expect(ended.map(({ state }) => state)).toEqual(Array.from({ length: 30 }, () => 'delivered'));
  const events = scene.receiver.received.map(({ eventId }) => eventId);
  expect([events.length, new Set(events).size]).toEqual([30, 30]);
  await scene.expectInvariants({ kills: 0 });
}, 180_000);

test('the same start twice is one workflow, and no fault', async () => {
  const client = new Client({ connection: temporal.env.nativeConnection, namespace: temporal.namespace });
  const start = starterOf(client, randomTaskQueue());
  const notificationId = `ntf_${randomTaskQueue()}`;
  await Promise.all([start(notificationId), start(notificationId)]);
  const handle = client.workflow.getHandle(`notification/${notificationId}/1`);
  const first = (await handle.describe()).runId;
  await handle.terminate();
  // Not even once it has ended.
  await start(notificationId);
  expect((await handle.describe()).runId).toBe(first);
});
