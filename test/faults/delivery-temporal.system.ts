import { useCrashScene } from '../support/crash-scene';
import { until } from '../../testbed/until';
import { deliveryOf } from '../support/histories';
import type { Path } from '../support/fast-path';
import { ownTemporal, type OwnTemporal } from '../../testbed/own-temporal';
import { fileNeeds } from '../support/needs';
import { opsJson } from '../ops/run';

fileNeeds('Temporal');

let temporal: OwnTemporal;
const scene = useCrashScene(async () => {
  temporal = await ownTemporal();
  return { temporal, environment: { RECONCILE_AFTER_MS: '1000' } };
});
afterAll(() => temporal?.close());

const attemptMade = () =>
  until(async () => (await scene.rows())[0]?.attempts.join() === 'failed', 'the first attempt failed');

test('Temporal is not there: tests are queued, ops says why, and quotes answered meanwhile; delivered once it comes', async () => {
  const [api, worker] = await Promise.all([scene.api(), scene.worker()]);
  await until(async () => (await worker.readiness()).status === 503, 'the worker listens');
  const startedAt = performance.now();
  const answer = scene.post(api);
  for (let calls = 0; calls < 5; calls += 1) expect(await scene.quote(api)).toBe(200);
  expect(await answer).toMatchObject({ status: 202, body: { data: { status: 'queued', attempt: null } } });
  expect(performance.now() - startedAt).toBeLessThan(13_000);
  expect(await scene.rows()).toEqual([expect.objectContaining({ state: 'queued', attempts: [] })]);

  const leaving = await scene.worker();
  await until(async () => (await leaving.readiness()).status === 503, 'another listens');
  expect(await leaving.end('SIGTERM')).toBe(0);

  await temporal.start();
  await scene.expectDelivered(['delivered']);

  // It goes away again: what is made then waits as well.
  await temporal.kill();
  expect(await scene.post(api)).toMatchObject({ status: 202, body: { data: { status: 'queued' } } });
  expect(await scene.quote(api)).toBe(200);
  // More than one endpoint has slots: of none does ops say that it starts.
  for (let nth = 0; nth < 20; nth += 1) await scene.storeTest();
  const doing = async () => {
    const found: { state: string; now: { doing: string } }[] = await opsJson(
      scene.databaseUrl,
      'notifications',
      'list',
    );
    return found.filter(({ state }) => state !== 'delivered').map(({ now }) => now.doing);
  };
  await until(async () => (await doing()).includes('not_started'), 'a start has failed', 20_000);
  const said = new Set<string>();
  const endsMs = performance.now() + 8_000;
  while (performance.now() < endsMs) for (const what of await doing()) said.add(what);
  expect([...said]).toEqual(['not_started']);
  await temporal.start();
  await scene.ended(120_000);
  await scene.expectInvariants({ kills: 0 });
  expect(await worker.end('SIGTERM')).toBe(0);
}, 240_000);

test('a workflow that no worker can continue is replaced, and continues at its step', async () => {
  const environment = { TEST_LADDER_SECONDS: '0,15' };
  const worker = await scene.worker(environment);
  scene.receiver.behave((nth) => (nth === 0 ? 503 : 200));
  const { notificationId } = await scene.storeTest();
  await attemptMade();
  await worker.end('SIGTERM');
  // A worker that takes its task, fails it seven times, and then keeps it without a word.
  const { client } = temporal;
  const { namespace } = client.options;
  const taskQueue = { name: scene.taskQueue };
  const take = () =>
    client.withDeadline(Date.now() + 30_000, () =>
      client.workflowService.pollWorkflowTaskQueue({ namespace, taskQueue, identity: 'half dead' }),
    );
  let attempt = 0;
  while (attempt < 8) {
    const task = await take();
    if (task.taskToken.length === 0) continue;
    ({ attempt } = task);
    if (attempt < 8)
      await client.workflowService.respondWorkflowTaskFailed({ namespace, taskToken: task.taskToken });
  }
  await scene.worker(environment);
  await scene.expectDelivered(['failed', 'delivered'], { generation: 2 });
  await until(
    async () => (await deliveryOf(client, notificationId).describe()).status.name === 'TERMINATED',
    'the first workflow is gone',
    20_000,
  );
  await scene.expectInvariants({ kills: 0 });
}, 240_000);

test('a namespace that is missing: the worker says so, the API does not care, and it heals when it is there', async () => {
  const namespace = 'partner-finance';
  const [api, worker] = await Promise.all([scene.api(), scene.worker({ TEMPORAL_NAMESPACE: namespace })]);
  await scene.storeTest();
  await worker.unreadyFor(namespace);
  expect(await worker.readiness()).toMatchObject({ status: 503 });
  expect(await api.readyStatus()).toBe(200);
  expect(await scene.rows()).toEqual([expect.objectContaining({ state: 'queued', attempts: [] })]);

  const client = await temporal.register(namespace);
  await worker.unreadyFor('search attributes PartnerId');
  expect(await scene.rows()).toEqual([expect.objectContaining({ state: 'queued', attempts: [] })]);
  await temporal.registerSearchAttributes(namespace);
  expect(await scene.ended(120_000)).toEqual([
    expect.objectContaining({ state: 'delivered', generation: 1, attempts: ['delivered'] }),
  ]);
  await worker.ready();
  expect(await scene.counts()).toEqual([{ delivered: 1, failed: 0, reserved: 0 }]);
  await scene.expectInvariants({ kills: 0, client });
}, 300_000);

/** Begins a ladder, whose first attempts fail and whose others are answered 200. @returns its notification's id */
async function beginLadder(steps: string, path: Path = 'regular', failing = 1): Promise<string> {
  await scene.worker({ TEST_LADDER_SECONDS: steps }, path);
  scene.receiver.behave((nth) => (nth < failing ? 503 : 200));
  const { notificationId } = await scene.storeTest();
  await attemptMade();
  await scene.expectPath(path);
  return notificationId;
}

test('Temporal killed in mid-ladder: the ladder goes on from its file; its store lost: started anew, counted once', async () => {
  await beginLadder('0,6,10', 'fast', 2);
  await temporal.kill();
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await temporal.start();
  await until(async () => (await scene.rows())[0]?.attempts.join() === 'failed,failed', 'a retry');
  expect(await scene.rows()).toEqual([expect.objectContaining({ generation: 1 })]);

  await temporal.kill();
  await temporal.forget();
  await temporal.start();
  await scene.expectDelivered(['failed', 'failed', 'delivered'], { generation: 2 });
  expect(scene.receiver.received).toHaveLength(3);
}, 240_000);

test('a workflow that an operator terminates ends its notification, and gives the place back', async () => {
  const notificationId = await beginLadder('0,3600');
  expect(await scene.counts()).toEqual([{ delivered: 0, failed: 0, reserved: 1 }]);
  await deliveryOf(temporal.client, notificationId).terminate('by hand');
  expect(await scene.ended()).toEqual([
    expect.objectContaining({ state: 'failed', reason: 'workflow_terminated', attempts: ['failed'] }),
  ]);
  expect(await scene.counts()).toEqual([{ delivered: 0, failed: 1, reserved: 0 }]);
  await scene.expectInvariants({ kills: 0 });
}, 180_000);
