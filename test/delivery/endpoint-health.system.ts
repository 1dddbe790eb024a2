import type { ServerResponse } from 'node:http';
import { setEndpointState } from '../../db/endpoints/endpoints';
import { RECEIVERS } from '../../dev/receivers';
import { emptyNotifications } from '../support/database';
import { useService } from '../support/service';
import { until } from '../../testbed/until';
import { addEndpoint, comesTo, standingOf, storeStatus, storeTest } from '../../testbed/notifications';
import { opsJson } from '../ops/run';
import { RECEIVER_NAME, verifySignatures } from '../support/webhook-receiver';

const service = useService({
  worker: {
    DELIVERY_LADDER_SECONDS: '0,1,1,1,1',
    TEST_LADDER_SECONDS: '0,1,1',
    RECONCILE_AFTER_MS: '2000',
    FIGURES_EVERY_MS: '200',
  },
});
const { api, receiver, worker, register } = service;
let endpoint: { endpointId: string; secret: string };

beforeEach(async () => {
  await emptyNotifications(api.database);
  endpoint = await register();
  receiver.reset();
});

const store = (applicationId: string, sequence = 1) =>
  storeStatus(api.database, { partnerId: api.partnerId, applicationId, sequence });
const rowOf = (id: string) => standingOf(api.database, id);
const endsAs = (id: string, state: 'delivered' | 'failed' | 'held') => comesTo(api.database, id, state);
const standing = async () =>
  (
    await api.database.sql`
      select state, disabled_reason as reason from webhook_endpoints where endpoint_id = ${endpoint.endpointId}`
  )[0];
const counts = () => api.database.sql`
  select event_type as type, delivered, failed, reserved from monthly_counts order by event_type`;
const enable = () =>
  api.database.db.transaction((tx) => setEndpointState(tx, endpoint.endpointId, { state: 'active' }));
const page = () => worker.worker.registry.metrics();
const served = (line: string) => until(async () => (await page()).includes(line), line);
const warned = (kind: string) => worker.logs.filter((line) => line.includes(`"kind":"${kind}"`));

test('410 disables the endpoint: the others are held, a test call is 409, and enabling releases them in sequence', async () => {
  receiver.behave((nth) => (nth === 0 ? 503 : 410));
  const climbing = await store('app_climbing');
  await until(() => receiver.received.length === 1, 'its first attempt');
  const gone = await store('app_gone');
  await endsAs(gone.notificationId, 'failed');
  expect(await rowOf(gone.notificationId)).toMatchObject({ reason: 'gone', made: 1 });
  expect(await standing()).toEqual({ state: 'disabled', reason: 'gone' });
  // It is logged after it is stored.
  await until(() => warned('endpoint_disabled').length === 1, 'it is logged');

  const later = [];
  for (let sequence = 1; sequence <= 5; sequence += 1) later.push(await store('app_later', sequence));
  const waiting = [climbing, ...later].map(({ notificationId }) => notificationId);
  for (const id of waiting) {
    await endsAs(id, 'held');
    expect(await rowOf(id)).toMatchObject({ reason: 'endpoint_gone' });
  }
  expect(await api.call({ path: '/v1/notifications/test' })).toMatchObject({
    status: 409,
    body: { error: { code: 'WEBHOOK_NOT_REGISTERED' } },
  });
  // A worker counts at times.
  await served('pfqs_notifications_held 6\n');
  await served('pfqs_webhook_endpoints_disabled{reason="gone"} 1\n');
  await served('pfqs_webhook_endpoints_failing{hours="0"} 0\n');
  await served(`pfqs_webhook_endpoint_given_up{endpoint="${endpoint.endpointId}",reason="gone"} 1\n`);
  const seen = receiver.received.length;

  receiver.behave(() => 200);
  await enable();
  await until(async () => !(await page()).includes('pfqs_webhook_endpoint_given_up{'), 'it is enabled');
  for (const id of waiting) await endsAs(id, 'delivered');
  const released = receiver.received.slice(seen);
  for (const one of released) verifySignatures(one, endpoint.secret);
  const events = released.map(({ eventId }) => eventId);
  expect(new Set(events)).toEqual(new Set([climbing, ...later].map(({ eventId }) => eventId)));
  const ofLater = later.map(({ eventId }) => eventId);
  expect(events.filter((id) => ofLater.includes(id))).toEqual(ofLater);
  for (const id of waiting) expect(await rowOf(id)).toMatchObject({ generation: 2, reason: null });
  expect(await counts()).toEqual([
    { type: 'credit_application.accepted', delivered: 6, failed: 1, reserved: 0 },
  ]);
});

test('an endpoint removed between two attempts: the notification is held, a test fails, and another endpoint gets it', async () => {
  receiver.behave(() => 503);
  const status = await store('app_1');
  const probe = await storeTest(api.database, { partnerId: api.partnerId });
  await until(() => receiver.received.length >= 2, 'the first attempts');
  await api.database.sql`
    update webhook_endpoints set state = 'removed' where endpoint_id = ${endpoint.endpointId}`;
  await endsAs(status.notificationId, 'held');
  await endsAs(probe.notificationId, 'failed');
  expect(await rowOf(probe.notificationId)).toMatchObject({ reason: 'webhook_not_registered' });

  receiver.reset();
  endpoint = await register();
  await endsAs(status.notificationId, 'delivered');
  expect(receiver.received.map(({ eventId }) => eventId)).toEqual([status.eventId]);
  for (const one of receiver.received) verifySignatures(one, endpoint.secret);
  expect((await counts()).map(({ delivered, failed }) => [delivered, failed])).toEqual([
    [1, 0],
    [0, 1],
  ]);
});

test('40 events wait while the endpoint hangs: webhooks show has the attempts under way', async () => {
  const hanging: ServerResponse[] = [];
  receiver.behave(() => (response) => void hanging.push(response));
  for (let nth = 0; nth < 40; nth += 1) await store(`app_waiting_${nth}`);
  await until(() => receiver.received.length === 16, 'all slots are taken', 30_000);
  const shown = await opsJson(api.databaseUrl, 'webhooks', 'show', endpoint.endpointId);
  expect(shown).toMatchObject({ pending: 40, attempts_under_way: 16 });
  expect(shown.last_attempts).toHaveLength(16);
  for (const attempt of shown.last_attempts)
    expect(attempt).toMatchObject({ outcome: null, finished_at: null, attempt_number: 1 });
  // Else the tests behind it wait for the slots.
  receiver.behave(() => 200);
  for (const response of hanging) response.end();
});

// Names that lead to private addresses are tried in test/outbound, by the sender.
test('an endpoint that registration refuses, in a row written by hand, is never connected to, and operators are warned', async () => {
  const url = receiver.url.replace(RECEIVER_NAME, '127.0.0.1');
  const { partnerId } = api;
  const { endpointId } = await addEndpoint(api.database, { partnerId, url, keyRing: service.keys });
  const { notificationId } = await storeTest(api.database, { partnerId });
  await endsAs(notificationId, 'failed');
  expect(await rowOf(notificationId)).toMatchObject({ reason: 'exhausted', made: 3 });
  const attempts = await api.database
    .sql`select failure, address, http_status as status from delivery_attempts`;
  expect(attempts).toEqual(attempts.map(() => ({ failure: 'blocked_address', address: null, status: null })));
  const warnings = worker.logs.filter((line) => line.includes('leads to where webhooks may not go'));
  expect(warnings).toHaveLength(3);
  expect(warnings[0]).toContain(`"endpointId":"${endpointId}"`);
  const counted = /^pfqs_delivery_attempt_seconds_count\{.*outcome="blocked_address"\} 3$/m;
  expect(await worker.worker.registry.metrics()).toMatch(counted);
  expect(receiver.received).toEqual([]);
  expect(await counts()).toMatchObject([{ delivered: 0, failed: 1, reserved: 0 }]);
});

// How each kind of receiver is treated is tried in test/outbound, by the sender.
test('bytes that belong to no request are noted of the endpoint, and deliver nothing', async () => {
  const surplus = async () =>
    (await api.database.sql`select 1 from webhook_endpoints where surplus_at is not null`).length;
  receiver.behave((_nth, _request, wire) => (RECEIVERS.error.answer(wire), null));
  await store('app_plain');
  await until(() => receiver.received.length >= 1, 'an attempt');
  expect(await surplus()).toBe(0);
  receiver.behave((_nth, _request, wire) => (RECEIVERS.twice_2_ms.answer(wire), null));
  const stored = [await store('app_1'), await store('app_2')];
  for (const { notificationId } of stored) await endsAs(notificationId, 'delivered');
  await until(async () => (await surplus()) === 1, 'it is noted');
});
