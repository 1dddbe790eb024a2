import { type TestWorker } from '../support/delivery';
import { standStill, until } from '../../testbed/until';
import { warmUp } from '../support/fast-path';
import { deliveryOf, localActivities } from '../support/histories';
import { comesTo, storeStatus, storeTest } from '../../testbed/notifications';
import { useWorkers } from '../support/service';
import { testTemporal } from '../support/temporal';

const temporal = testTemporal();
const service = useWorkers(temporal);
const { database } = service;
const FAST = ['attemptAtOnce'];
/** A fast attempt takes less than half a second, and what a busy test machine is forgiven. */
const SLOW_FOR_ALL_MS = 4_600;
let worker: TestWorker;

// Twelve slots on the fast path.
const startWorker = () => service.start({ TEST_LADDER_SECONDS: '0,1', WORKFLOW_TASKS_AT_ONCE: '24' });
beforeAll(async () => {
  worker = await startWorker();
}, 300_000);
beforeEach(() => service.receiver.behave(() => 200));

/** A partner whose endpoint is known to answer fast. */
async function fastPartner(): Promise<string> {
  const partnerId = await service.newPartner();
  await warmUp({ database, client: temporal.client }, partnerId);
  return partnerId;
}

const store = async (partnerId: string) => (await storeTest(database, { partnerId })).notificationId;
const handleOf = (notificationId: string) => deliveryOf(temporal.client, notificationId);
async function delivered(notificationId: string): Promise<string[]> {
  await comesTo(database, notificationId, 'delivered');
  await handleOf(notificationId).result();
  return localActivities(handleOf(notificationId));
}
/** No claim takes anything of a partner meanwhile: its queue is locked, as by another worker's claim. */
async function withoutClaims<T>(partnerId: string, task: () => Promise<T>): Promise<T> {
  const done = await database.sql.begin(async (tx) => {
    await tx`
      select pg_advisory_xact_lock(hashtext('claim_notifications'), hashtext(${`${partnerId}/sandbox`}))`;
    return { result: await task() };
  });
  return done.result;
}

/** Starts that this worker has left to the regular path, as there was no slot, or their endpoint was known to hang. */
async function startsOnRegularPath(): Promise<number> {
  const paths = await worker.worker.registry.getSingleMetricAsString('pfqs_delivery_path_total');
  return [...paths.matchAll(/\{path="(?:no_slot|endpoint_not_fast)"\} (\d+)/g)].reduce(
    (sum, [, starts]) => sum + Number(starts),
    0,
  );
}

/** @returns the local activities that took part. */
const deliver = async (partnerId: string) => delivered(await store(partnerId));

test('a delivery to an endpoint that answers fast takes the fast path, and starts eagerly', async () => {
  const notificationId = await store(await fastPartner());
  expect(await delivered(notificationId)).toEqual(FAST);
  const { events } = await handleOf(notificationId).fetchHistory();
  const started = events?.[0]?.workflowExecutionStartedEventAttributes;
  expect(started?.eagerExecutionAccepted).toBe(true);
  expect(events?.filter(({ activityTaskScheduledEventAttributes: regular }) => regular)).toEqual([]);
  expect(await worker.worker.registry.getSingleMetricAsString('pfqs_delivery_path_total')).toMatch(
    /\{path="fast"\} [1-9]/,
  );
});

test('what an earlier process has seen counts', async () => {
  const partnerId = await fastPartner();
  await service.stop();
  worker = await startWorker();
  expect(await deliver(partnerId)).toEqual(FAST);
});

test('an endpoint that nobody has sent to is tried; one that was slow takes the regular path until it is fast again', async () => {
  const partnerId = await service.newPartner();
  expect(await deliver(partnerId)).toEqual(FAST);
  service.receiver.behave(
    () => (response) => void setTimeout(() => response.writeHead(200).end(), SLOW_FOR_ALL_MS),
  );
  expect(await deliver(partnerId)).toEqual(FAST);
  service.receiver.behave(() => 200);
  expect(await deliver(partnerId)).toEqual([]);
  expect(await deliver(partnerId)).toEqual(FAST);
});

test('endpoints stay on the fast path while it is this process that is slow', async () => {
  const partnerId = await fastPartner();
  // As on a machine with too little CPU: the answer cannot be read for so long. The receiver is in this process.
  service.receiver.behave(() => {
    standStill(600);
    return 200;
  });
  const slow = await store(partnerId);
  expect(await delivered(slow)).toEqual(FAST);
  const [attempt] = await database.sql`
    select duration_ms from delivery_attempts where notification_id = ${slow}`;
  expect(attempt?.['duration_ms']).toBeGreaterThanOrEqual(500);
  expect(await deliver(partnerId)).toEqual(FAST);
});

test('new endpoints that hang have a quarter of the slots, and leave the others', async () => {
  const known = await fastPartner();
  const held: (() => void)[] = [];
  const here = service.receiver.received.length;
  service.receiver.behave((nth) =>
    nth >= here + 8 ? 200 : (response) => void held.push(() => response.writeHead(200).end()),
  );
  const partners = await Promise.all(Array.from({ length: 8 }, () => service.newPartner()));
  const notifications = await Promise.all(partners.map(store));
  await until(() => held.length === 8, 'all eight are at their endpoints');
  expect(await deliver(known)).toEqual(FAST);
  for (const answer of held) answer();
  const taken = await Promise.all(notifications.map(delivered));
  expect(taken.filter((path) => path.length > 0)).toEqual(Array.from({ length: 3 }, () => FAST));
});

test('an endpoint that begins to hang holds half of the slots at most, and others are served meanwhile', async () => {
  const [hanging, other] = [await fastPartner(), await fastPartner()];
  const held: (() => void)[] = [];
  const onRegularPath = await startsOnRegularPath();
  const here = service.receiver.received.length;
  service.receiver.behave((nth) =>
    nth >= here + 15 ? 200 : (response) => void held.push(() => response.writeHead(200).end()),
  );
  // One claim takes as many as there are slots. The others are claimed when these hang.
  const notifications = await withoutClaims(hanging, () =>
    Promise.all(
      Array.from(
        { length: 15 },
        async () => (await storeStatus(database, { partnerId: hanging })).notificationId,
      ),
    ),
  );
  await until(() => held.length === 15, 'all fifteen are at the endpoint');
  // Three of them may be there before the answers to their starts.
  await until(async () => (await startsOnRegularPath()) >= onRegularPath + 3, 'the others have no slot');
  // All slots are taken.
  expect(await deliver(other)).toEqual([]);
  await new Promise((resolve) => setTimeout(resolve, SLOW_FOR_ALL_MS));
  for (const answer of held) answer();
  const taken = await Promise.all(notifications.map(delivered));
  expect(taken.filter((path) => path.length > 0)).toEqual(Array.from({ length: 12 }, () => FAST));
  expect(await deliver(hanging)).toEqual([]);
});
