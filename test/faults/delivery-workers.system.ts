import { Client } from '@temporalio/client';
import { useCrashScene } from '../support/crash-scene';
import { until } from '../../testbed/until';
import { localActivitiesOf, PATHS } from '../support/fast-path';
import { starterOf } from '../support/histories';
import { randomTaskQueue, testTemporal } from '../support/temporal';

const temporal = testTemporal();
const OTHERS = ['P100002', 'P100003', 'P100004'];
const scene = useCrashScene(() => ({ temporal, others: OTHERS }));

const attemptsOf = async () => (await scene.rows()).map(({ attempts }) => attempts.join());

describe.each(PATHS)('on the %s path', (path) => {
  test('all workers down for a while: nothing is lost, overdue waits end at once', async () => {
    const partners = [scene.partnerId, ...OTHERS];
    const victim = await scene.worker({ TEST_LADDER_SECONDS: '0,5' }, path);
    scene.receiver.behave((nth) => (nth < partners.length ? 503 : 200));
    for (const partnerId of partners) await scene.storeTest(partnerId);
    await until(
      async () => (await attemptsOf()).join() === 'failed,failed,failed,failed',
      'every ladder waits',
      60_000,
    );
    await scene.expectPath(path);
    await victim.end('SIGKILL');
    for (let times = 0; times < 15; times += 1)
      for (const partnerId of partners) await scene.storeTest(partnerId);
    // The longest wait of the ladders is 10 s: they become due while nobody is there.
    await new Promise((resolve) => setTimeout(resolve, 10_500));
    expect((await scene.rows()).filter(({ state }) => state === 'queued')).toHaveLength(60);

    await scene.worker({ TEST_LADDER_SECONDS: '0,1' });
    const rows = await scene.ended(90_000);
    expect(rows.filter(({ state }) => state === 'delivered')).toHaveLength(64);
    expect(await attemptsOf()).toEqual([
      ...Array.from({ length: 4 }, () => 'failed,delivered'),
      ...Array.from({ length: 60 }, () => 'delivered'),
    ]);
    expect(scene.receiver.received).toHaveLength(68);
    expect(await scene.counts()).toEqual(partners.map(() => ({ delivered: 16, failed: 0, reserved: 0 })));
    await scene.expectInvariants({ kills: 1 });
  }, 240_000);

  test('SIGTERM during a delivery: it is finished, the process leaves with 0, and nothing is sent twice', async () => {
    const leaving = await scene.worker({}, path);
    let answer = () => {};
    scene.receiver.behave(() => (response) => void (answer = () => response.writeHead(200).end()));
    await scene.storeTest();
    await until(() => scene.receiver.received.length === 1, 'the event arrives', 60_000);
    const code = leaving.end('SIGTERM');
    // Longer than a workflow task may take without a sign of life (10 s).
    await new Promise((resolve) => setTimeout(resolve, path === 'fast' ? 12_000 : 3_000));
    expect(leaving.child.exitCode).toBeNull();
    answer();
    expect(await code).toBe(0);

    await scene.worker();
    await scene.expectDelivered(['delivered'], { path });
    expect(scene.receiver.received).toHaveLength(1);
  }, 180_000);

  test('two workers at once: each notification is started and sent once', async () => {
    const workers = [await scene.worker({}, path), await scene.worker({}, path)];
    await Promise.all(workers.map((worker) => worker.ready()));
    const stored: string[] = [];
    const fast = async () => {
      const types = await Promise.all(stored.map((id) => localActivitiesOf(temporal.client, id)));
      return types.some(({ length }) => length > 0);
    };
    // Which worker claims them depends on who comes first, and the second one may not know yet that the endpoint is fast.
    do {
      const thirty = Array.from({ length: 30 }, () => scene.storeTest());
      stored.push(...(await Promise.all(thirty)).map(({ notificationId }) => notificationId));
      const ended = await scene.ended(90_000);
      expect(ended.map(({ state }) => state)).toEqual(stored.map(() => 'delivered'));
    } while (path === 'fast' && stored.length < 90 && !(await fast()));
    const events = scene.receiver.received.map(({ eventId }) => eventId);
    expect([events.length, new Set(events).size]).toEqual([stored.length, stored.length]);
    expect(path === 'regular' || (await fast())).toBe(true);
    await scene.expectInvariants({ kills: 0 });
  }, 180_000);
});

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
