import { useCrashScene } from '../support/crash-scene';
import { until } from '../../testbed/until';
import { deliveryOf } from '../support/histories';
import { PATHS } from '../support/fast-path';
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
  until(
    async () => (await scene.rows())[0]?.attempts.join() === 'failed',
    'the first attempt failed',
    60_000,
  );

test('Temporal is not there: tests are queued and quotes answered meanwhile; delivered once it comes', async () => {
  const [api, worker] = await Promise.all([scene.api(), scene.worker()]);
  await until(async () => (await worker.readiness()).status === 503, 'the worker listens', 60_000);
  const startedAt = performance.now();
  const answer = scene.post(api);
  for (let calls = 0; calls < 5; calls += 1) expect(await scene.quote(api)).toBe(200);
  expect(await answer).toMatchObject({ status: 202, body: { data: { status: 'queued', attempt: null } } });
  expect(performance.now() - startedAt).toBeLessThan(13_000);
  expect(await scene.rows()).toEqual([expect.objectContaining({ state: 'queued', attempts: [] })]);

  const leaving = await scene.worker();
  await until(async () => (await leaving.readiness()).status === 503, 'another listens', 60_000);
  expect(await leaving.end('SIGTERM')).toBe(0);

  await temporal.start();
  await scene.expectDelivered(['delivered']);

  // It goes away again: what is made then waits as well.
  await temporal.kill();
  expect(await scene.post(api)).toMatchObject({ status: 202, body: { data: { status: 'queued' } } });
  expect(await scene.quote(api)).toBe(200);
  await temporal.start();
  await scene.ended();
  await scene.expectInvariants({ kills: 0 });
  expect(await worker.end('SIGTERM')).toBe(0);
}, 240_000);

test('Temporal is away: ops says of no notification that it starts, and why it waits', async () => {
  await temporal.start();
  const worker = await scene.worker();
  await worker.ready();
  await temporal.kill();
  for (let nth = 0; nth < 20; nth += 1) await scene.storeTest();
  const doing = async () => {
    const found: { now: { doing: string } }[] = await opsJson(scene.databaseUrl, 'notifications', 'list');
    return found.map(({ now }) => now.doing);
  };
  await until(async () => (await doing()).includes('not_started'), 'a start has failed', 20_000);
  const said = new Set<string>();
  const endsMs = performance.now() + 8_000;
  while (performance.now() < endsMs) for (const what of await doing()) said.add(what);
  // More wait than one endpoint has slots.
  expect([...said]).toEqual(['not_started']);
  await temporal.start();
  await scene.ended(120_000);
}, 240_000);

test('no worker runs in mid-ladder: the page of the workflow says how late its next attempt was', async () => {
  await temporal.start();
  const environment = { TEST_LADDER_SECONDS: '0,4', RECONCILE_AFTER_MS: '600000' };
  const worker = await scene.worker(environment);
  scene.receiver.behave((nth) => (nth === 0 ? 503 : 200));
  const { notificationId } = await scene.storeTest();
  await attemptMade();
  await worker.end('SIGTERM');
  await new Promise((resolve) => setTimeout(resolve, 16_000));
  await scene.worker(environment);
  await scene.expectDelivered(['failed', 'delivered']);
  const { log } = await deliveryOf(temporal.client, notificationId).query<{ log: string[] }>('progress');
  expect(log[1]).toMatch(/Z attempt 2 [1-9]\d(\.\d)? s late: no worker took it up, or Temporal was away$/);
}, 240_000);

test('a workflow that no worker can continue is replaced, and continues at its step', async () => {
  await temporal.start();
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

describe.each(PATHS)('on the %s path', (path) => {
  /** Begins a ladder, whose first attempt fails and whose others are answered 200. @returns its notification's id */
  async function beginLadder(environment: Readonly<Record<string, string>>): Promise<string> {
    await scene.worker(environment, path);
    scene.receiver.behave((nth) => (nth === 0 ? 503 : 200));
    const { notificationId } = await scene.storeTest();
    await attemptMade();
    await scene.expectPath(path);
    return notificationId;
  }

  test('Temporal killed in mid-ladder: the ladder goes on from its file', async () => {
    await beginLadder({ TEST_LADDER_SECONDS: '0,6,8', RECONCILE_AFTER_MS: '600000' });
    await temporal.kill();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await temporal.start();
    await scene.expectDelivered(['failed', 'delivered']);
    expect(scene.receiver.received).toHaveLength(2);
  }, 240_000);

  test('Temporal loses its store: what was under way is started anew, counted once', async () => {
    await beginLadder({ TEST_LADDER_SECONDS: '0,20' });
    await temporal.kill();
    await temporal.forget();
    await temporal.start();
    await scene.expectDelivered(['failed', 'delivered'], { generation: 2 });
    expect(scene.receiver.received).toHaveLength(2);
  }, 240_000);

  test('a workflow that an operator terminates ends its notification, and gives the place back', async () => {
    const notificationId = await beginLadder({ TEST_LADDER_SECONDS: '0,3600' });
    expect(await scene.counts()).toEqual([{ delivered: 0, failed: 0, reserved: 1 }]);
    await deliveryOf(temporal.client, notificationId).terminate('by hand');
    expect(await scene.ended()).toEqual([
      expect.objectContaining({ state: 'failed', reason: 'workflow_terminated', attempts: ['failed'] }),
    ]);
    expect(await scene.counts()).toEqual([{ delivered: 0, failed: 1, reserved: 0 }]);
    await scene.expectInvariants({ kills: 0 });
  }, 180_000);
});

test('a body of almost 20 KB is sent whole, and Temporal keeps none of it', async () => {
  const { notificationId, eventId } = await scene.storeTest();
  const filling = 'x'.repeat(19_000);
  await scene.database.sql`
    update notifications set body = regexp_replace(body, '"credit_product":("[^"]*"|null)', ${`"credit_product":"${filling}"`})
    where notification_id = ${notificationId}`;
  await scene.worker();
  expect(await scene.ended()).toEqual([expect.objectContaining({ state: 'delivered' })]);
  const [{ body } = { body: '' }] = scene.receiver.received;
  expect(JSON.parse(body)).toMatchObject({ event_id: eventId, data: { credit_product: filling } });

  const { events } = await deliveryOf(temporal.client, notificationId).fetchHistory();
  const sizes = (events ?? []).map((event) => JSON.stringify(event).length);
  expect(sizes.length).toBeGreaterThan(5);
  expect(Math.max(...sizes)).toBeLessThan(4_000);
  await scene.expectInvariants({ kills: 0 });
}, 180_000);
