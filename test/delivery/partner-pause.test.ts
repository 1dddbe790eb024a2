import { ulid } from 'ulid';
import { useService } from '../support/service';
import { startTestWorker, until, type TestWorker } from '../support/delivery';
import { storeStatus } from '../support/notifications';
import { testTemporal } from '../support/temporal';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy';
import { deliveryWorkflowId } from '../../workflows/names';
import { opsJson } from '../ops/run';

const temporal = testTemporal();
const environment = { DELIVERY_LADDER_SECONDS: '0,1,1,1,1,1', TEST_LADDER_SECONDS: '0,1,1' };
let proxy: TcpProxy;
let second: TestWorker | undefined;
const service = useService(temporal, async () => {
  proxy = await startTcpProxy({ port: Number(temporal.address.split(':')[1]) });
  return { worker: environment, temporalAddress: `127.0.0.1:${proxy.port}` };
});
afterAll(async () => {
  await second?.close();
  await proxy?.close();
});
beforeEach(async () => {
  proxy.refuse(false);
  await service.api.database
    .sql`truncate notifications, deliveries, delivery_attempts, monthly_counts, delivery_pauses`;
  await service.register();
  service.receiver.received.length = 0;
  service.receiver.behave(() => 200);
});

const ops = (...args: string[]) => opsJson(service.api.databaseUrl, ...args);
const pause = () => ops('partners', 'pause-deliveries', service.api.partnerId, '--environment', 'sandbox');
const resume = () => ops('partners', 'resume-deliveries', service.api.partnerId, '--environment', 'sandbox');
const store = () =>
  storeStatus(service.api.database, { partnerId: service.api.partnerId, applicationId: `app_${ulid()}` });
const states = async () => {
  const rows = await service.api.database.sql<{ state: string; count: number }[]>`
    select state, count(*)::int as count, max(attempts) as attempts, max(generation) as generation
    from notifications_now group by 1 order by 1`;
  return rows.map((row) => ({ ...row }));
};
const delivered = async (count: number) =>
  (await states()).some((row) => row.state === 'delivered' && row.count === count);
const shown = async (id: string) =>
  (await service.api.call({ method: 'GET', path: `/v1/notifications/${id}` })).body.data;
const sent = () => service.receiver.received.length;
const quietFor = async (ms: number) => {
  const before = sent();
  await new Promise((resolve) => setTimeout(resolve, ms));
  expect(sent()).toBe(before);
};

test('first attempts and retries wait, partners see pending and retrying, a test is queued; then all is delivered', async () => {
  service.receiver.behave(() => 503);
  const retried = await store();
  await until(() => sent() === 1, 'its first attempt');
  expect(await pause()).toMatchObject({ paused: true, changed: true });
  const first = await store();
  await quietFor(2_500);
  service.receiver.behave(() => 200);
  expect(await shown(retried.notificationId)).toMatchObject({
    status: 'retrying',
    attempts: 1,
    next_attempt_at: null,
  });
  expect(await shown(first.notificationId)).toMatchObject({
    status: 'pending',
    attempts: 0,
    next_attempt_at: null,
  });
  const begunMs = performance.now();
  const answer = await service.api.call({ method: 'POST', path: '/v1/notifications/test' });
  expect(answer).toMatchObject({ status: 202, body: { data: { status: 'queued', attempt: null } } });
  expect(performance.now() - begunMs).toBeLessThan(5_000);
  // Temporal's page says why the workflow ended.
  const handle = temporal.env.client.workflow.getHandle(deliveryWorkflowId(retried.notificationId, 1));
  expect(await handle.result()).toMatchObject({ status: 'paused' });
  expect(service.worker.logs.some((line) => line.includes('deliveries to this partner are paused'))).toBe(
    true,
  );
  expect(await resume()).toMatchObject({ paused: false, changed: true });
  await until(() => delivered(3), 'all are delivered');
  expect(await states()).toEqual([{ state: 'delivered', count: 3, attempts: 2, generation: 2 }]);
  expect(await detailsOf(retried.notificationId)).toMatch(/^Before this:\n\n- paused .* to .* by tester$/);
  // An ordinary delivery has none, so that it costs nothing.
  expect(await detailsOf(first.notificationId, 1)).toBeUndefined();
});

/** What Temporal's page shows of a workflow beside its summary. */
const detailsOf = async (notificationId: string, generation = 2) =>
  (
    await temporal.env.client.workflow.getHandle(deliveryWorkflowId(notificationId, generation)).describe()
  ).staticDetails();

test('after a hold, the page of the next workflow names it', async () => {
  const endpoint = ['--partner', service.api.partnerId, '--environment', 'sandbox'];
  await ops('webhooks', 'disable', ...endpoint);
  const { notificationId } = await store();
  await until(async () => (await states()).some(({ state }) => state === 'held'), 'it is held');
  await ops('webhooks', 'enable', ...endpoint);
  await until(() => delivered(1), 'it is delivered');
  expect(await detailsOf(notificationId)).toMatch(
    /^Before this:\n\n- held .* to .*: the endpoint was disabled by an operator of the service$/,
  );
});

test('a pause while two workers send: no attempt begins after it, what was sent is recorded, nothing is lost', async () => {
  second = await startTestWorker({
    databaseUrl: service.api.databaseUrl,
    temporal: { address: temporal.address, namespace: temporal.namespace },
    taskQueue: service.taskQueue,
    receiver: service.receiver,
    keys: service.keys,
    environment,
  });
  await second.ready();
  let underWay = 0;
  service.receiver.behave(() => (response) => {
    underWay += 1;
    setTimeout(() => {
      underWay -= 1;
      response.writeHead(200).end();
    }, 1_000);
  });
  for (let nth = 0; nth < 80; nth += 1) await store();
  await until(() => sent() >= 10, 'some are being sent');
  await pause();
  const [{ begun = 0 } = {}] = await service.api.database
    .sql`select count(*)::int as begun from delivery_attempts`;
  await until(async () => sent() === begun && underWay === 0, 'what was begun is sent');
  // A restarted worker begins none either.
  await second.close();
  second = undefined;
  await quietFor(2_000);
  await until(() => delivered(begun), 'what was sent is recorded');
  expect(begun).toBeLessThan(80);
  await resume();
  await until(() => delivered(80), 'all are delivered', 40_000);
  expect(sent()).toBe(80);
});

test('pause and resume need no Temporal', async () => {
  proxy.refuse(true);
  proxy.cut();
  await store();
  await pause();
  proxy.refuse(false);
  await quietFor(4_000);
  await resume();
  await until(() => sent() === 1, 'it is sent', 40_000);
});
