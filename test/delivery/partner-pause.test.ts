import { ulid } from 'ulid';
import { emptyNotifications } from '../support/database';
import { useService } from '../support/service';
import { until } from '../../testbed/until';
import { deliveryOf } from '../support/histories';
import { storeStatus } from '../../testbed/notifications';
import { testTemporal } from '../support/temporal';
import { opsJson } from '../ops/run';

const temporal = testTemporal();
const { api, receiver, register, worker } = useService(
  {
    worker: { DELIVERY_LADDER_SECONDS: '0,1,1,1,1,1', TEST_LADDER_SECONDS: '0,1,1' },
  },
  temporal,
);
beforeEach(async () => {
  await emptyNotifications(api.database);
  await register();
  receiver.reset();
});

const ops = (...args: string[]) => opsJson(api.databaseUrl, ...args);
const pause = () => ops('partners', 'pause-deliveries', api.partnerId, '--environment', 'sandbox');
const resume = () => ops('partners', 'resume-deliveries', api.partnerId, '--environment', 'sandbox');
const store = () => storeStatus(api.database, { partnerId: api.partnerId, applicationId: `app_${ulid()}` });
const states = async () => {
  const rows = await api.database.sql<{ state: string; count: number }[]>`
    select state, count(*)::int as count, max(attempts) as attempts, max(generation) as generation
    from notifications_now group by 1 order by 1`;
  return rows.map((row) => ({ ...row }));
};
const delivered = async (count: number) =>
  (await states()).some((row) => row.state === 'delivered' && row.count === count);
const shown = async (id: string) =>
  (await api.call({ method: 'GET', path: `/v1/notifications/${id}` })).body.data;
const sent = () => receiver.received.length;
const quietFor = async (ms: number) => {
  const before = sent();
  await new Promise((resolve) => setTimeout(resolve, ms));
  expect(sent()).toBe(before);
};

test('first attempts and retries wait, partners see pending and retrying, a test is queued; then all is delivered', async () => {
  receiver.behave(() => 503);
  const retried = await store();
  await until(() => sent() === 1, 'its first attempt');
  expect(await pause()).toMatchObject({ paused: true, changed: true });
  const first = await store();
  await quietFor(2_500);
  receiver.behave(() => 200);
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
  const answer = await api.call({ method: 'POST', path: '/v1/notifications/test' });
  expect(answer).toMatchObject({ status: 202, body: { data: { status: 'queued', attempt: null } } });
  expect(performance.now() - begunMs).toBeLessThan(5_000);
  // Temporal's page says why the workflow ended.
  const handle = deliveryOf(temporal.client, retried.notificationId);
  expect(await handle.result()).toMatchObject({ status: 'paused' });
  expect(worker.logs.some((line) => line.includes('deliveries to this partner are paused'))).toBe(true);
  expect(await resume()).toMatchObject({ paused: false, changed: true });
  await until(() => delivered(3), 'all are delivered');
  expect(await states()).toEqual([{ state: 'delivered', count: 3, attempts: 2, generation: 2 }]);
  expect(await detailsOf(retried.notificationId)).toMatch(/^Before this:\n\n- paused .* to .* by tester$/);
  // An ordinary delivery has none, so that it costs nothing.
  expect(await detailsOf(first.notificationId, 1)).toBeUndefined();
});

/** What Temporal's page shows of a workflow beside its summary. */
const detailsOf = async (notificationId: string, generation = 2) =>
  (await deliveryOf(temporal.client, notificationId, generation).describe()).staticDetails();

test('after a hold, the page of the next workflow names it', async () => {
  const endpoint = ['--partner', api.partnerId, '--environment', 'sandbox'];
  await ops('webhooks', 'disable', ...endpoint);
  const { notificationId } = await store();
  await until(async () => (await states()).some(({ state }) => state === 'held'), 'it is held');
  await ops('webhooks', 'enable', ...endpoint);
  await until(() => delivered(1), 'it is delivered');
  expect(await detailsOf(notificationId)).toMatch(
    /^Before this:\n\n- held .* to .*: the endpoint was disabled by an operator of the service$/,
  );
});
