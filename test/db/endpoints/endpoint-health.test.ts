import { parseKeyRing } from '../../../db/endpoints/key-ring';
import { openAttempt, recordAttempt } from '../../../db/notifications/attempt';
import { healthFigures } from '../../../db/figures';
import { listOperatorEvents } from '../../../db/audit/operator-events';
import { setEndpointState } from '../../../db/endpoints/endpoints';
import type { DeliveryOutcome } from '../../../domain/delivery-outcome';
import { useDatabase } from '../../support/database';
import {
  addEndpoint,
  newKeyRingText,
  newPartner,
  openedAttempt,
  setServiceClock,
  storeStatus,
  storeTest,
} from '../../../testbed/notifications';
import { DELIVERED, FAILED } from '../../../testbed/values';

const START = Date.parse('2026-11-02T09:00:00Z');
const keyRing = parseKeyRing(newKeyRingText());
const database = useDatabase({ poolSize: 20 });

afterEach(() => setServiceClock(database, null));
const atHour = (hours: number) =>
  setServiceClock(database, new Date(START + hours * 3_600_000).toISOString());

/** A partner with an endpoint and a notification that never ends, to fail or succeed as often as a test wants. */
async function newEndpoint() {
  const { partnerId, endpointId } = await newPartner(database, keyRing);
  const open = async () => {
    const { notificationId } = await storeTest(database, { partnerId });
    return openedAttempt(database, { notificationId, generation: 1 });
  };
  const finish = async (ref: { notificationId: string; attemptNumber: number }, outcome: DeliveryOutcome) =>
    (await recordAttempt(database.db, ref, { outcome, address: null })).event;
  return {
    partnerId,
    endpointId,
    open,
    finish,
    attempt: async (outcome: DeliveryOutcome) => finish(await open(), outcome),
    async fail(times: number) {
      for (let nth = 0; nth < times; nth += 1) await this.attempt(FAILED);
    },
    health: async () =>
      (
        await database.sql`
          select state, disabled_reason as reason, failures_since_success as failures,
            failing_since is not null as failing, last_success_at is not null as succeeded, xmin::text as version
          from webhook_endpoints where endpoint_id = ${endpointId}`
      )[0],
    events: async () =>
      (await listOperatorEvents(database.db, { partnerId, since: '2020-01-01', limit: 50 })).map(
        ({ kind, details }) => [kind, details['hours'] ?? details['reason']],
      ),
  };
}

test('an endpoint that fails for five days is disabled; a success in between begins anew, and so does enabling', async () => {
  const endpoint = await newEndpoint();
  await atHour(0);
  await endpoint.fail(30);
  await atHour(100);
  await endpoint.attempt(DELIVERED);
  expect(await endpoint.health()).toMatchObject({ failures: 0, failing: false, succeeded: true });
  await atHour(121);
  await endpoint.fail(30);
  await atHour(220);
  await endpoint.fail(1);
  expect(await endpoint.health()).toMatchObject({ state: 'active', failures: 31 });
  // Opened while it was active, as every attempt is; only its end decides.
  const last = await endpoint.open();
  await atHour(241);
  expect(await endpoint.finish(last, FAILED)).toMatchObject({
    kind: 'endpoint_disabled',
    endpointId: endpoint.endpointId,
    details: { reason: 'failing', hours: 120, failures: 32, last_success_at: expect.any(String) },
  });
  expect(await endpoint.health()).toMatchObject({ state: 'disabled', reason: 'failing' });
  await database.db.transaction((tx) => setEndpointState(tx, endpoint.endpointId, { state: 'active' }));
  await endpoint.fail(1);
  expect(await endpoint.health()).toMatchObject({ state: 'active', failures: 1 });
});

test('operators are warned once at 24, 48 and 96 hours, and told when it is well again', async () => {
  const endpoint = await newEndpoint();
  for (const hour of [0, 23, 24, 25, 47, 50, 95, 96, 97, 119]) {
    await atHour(hour);
    await endpoint.fail(2);
  }
  await endpoint.attempt(DELIVERED);
  await endpoint.attempt(DELIVERED);
  expect(await endpoint.events()).toEqual([
    ['endpoint_recovered', 119],
    ['endpoint_failing', 96],
    ['endpoint_failing', 50],
    ['endpoint_failing', 24],
  ]);
});

test('what a dead worker left open says nothing about the endpoint', async () => {
  const endpoint = await newEndpoint();
  const { notificationId } = await endpoint.open();
  await openAttempt(database.db, { notificationId, generation: 1 });
  expect(await endpoint.health()).toMatchObject({ failing: false, failures: 0, succeeded: false });
});

test('a late result of an attempt that was closed: a failure says nothing, even a 410 told twice, and a success counts', async () => {
  const endpoint = await newEndpoint();
  const late = async () => {
    const first = await endpoint.open();
    await openAttempt(database.db, first);
    return first;
  };
  for (const failed of [FAILED, { ...FAILED, failure: 'gone', httpStatus: 410 } as const]) {
    const attempt = await late();
    for (let told = 0; told < 2; told += 1) expect(await endpoint.finish(attempt, failed)).toBeNull();
  }
  expect(await endpoint.health()).toMatchObject({ state: 'active', failures: 0, failing: false });
  await endpoint.fail(1);
  await endpoint.finish(await late(), DELIVERED);
  expect(await endpoint.health()).toMatchObject({ failures: 0, failing: false, succeeded: true });
});

test('a healthy endpoint is written to once a minute, not with every delivery', async () => {
  const endpoint = await newEndpoint();
  await atHour(0);
  const refs = await Promise.all(Array.from({ length: 30 }, () => endpoint.open()));
  await Promise.all(refs.slice(0, 15).map((ref) => endpoint.finish(ref, DELIVERED)));
  const { version } = (await endpoint.health()) ?? {};
  await Promise.all(refs.slice(15, 29).map((ref) => endpoint.finish(ref, DELIVERED)));
  expect((await endpoint.health())?.['version']).toBe(version);
  await atHour(0.02);
  await endpoint.finish(refs[29] as (typeof refs)[0], DELIVERED);
  expect((await endpoint.health())?.['version']).not.toBe(version);
});

test('failures and successes that end together wait for each other, and none is lost', async () => {
  const endpoint = await newEndpoint();
  const refs = await Promise.all(Array.from({ length: 40 }, () => endpoint.open()));
  await Promise.all(refs.map((ref) => endpoint.finish(ref, FAILED)));
  expect(await endpoint.health()).toMatchObject({ failures: 40 });
  const more = await Promise.all(Array.from({ length: 40 }, () => endpoint.open()));
  await Promise.all(more.map((ref, at) => endpoint.finish(ref, at % 2 === 0 ? FAILED : DELIVERED)));
  await endpoint.attempt(DELIVERED);
  expect(await endpoint.health()).toMatchObject({ failures: 0, failing: false });
});

test('a partner is failing when its live endpoint has failed for an hour while an event of an application is retried; a failed test or the sandbox does not count', async () => {
  const failing = async () => (await healthFigures(database.db)).partnersFailing;
  const attempt = async (notificationId: string, outcome: DeliveryOutcome) => {
    await database.sql`update deliveries set due_at = service_now() where notification_id = ${notificationId}`;
    const ref = await openedAttempt(database, { notificationId, generation: 1 });
    await recordAttempt(database.db, ref, { outcome, address: null });
  };
  await atHour(0);
  const sent = { live: '', sandbox: '' };
  for (const environment of ['live', 'sandbox'] as const) {
    const { partnerId } = await newPartner(database, keyRing);
    await addEndpoint(database, { partnerId, environment, keyRing });
    sent[environment] = (await storeStatus(database, { partnerId, environment })).notificationId;
  }
  const live = { partnerId: (await newPartner(database, keyRing)).partnerId, environment: 'live' as const };
  await addEndpoint(database, { ...live, keyRing });
  const test = (await storeTest(database, live)).notificationId;

  for (const id of [sent.live, sent.sandbox, test]) await attempt(id, FAILED);
  expect(await failing()).toBe(0);
  await atHour(1.1);
  expect(await failing()).toBe(1);
  await attempt(sent.live, DELIVERED);
  expect(await failing()).toBe(0);
});
