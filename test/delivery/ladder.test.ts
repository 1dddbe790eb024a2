import { restartNotification } from '../../db/notifications/claim';
import { SENDS_PER_ENDPOINT } from '../../domain/delivery-now';
import { DELIVERY_LADDER_MS, TEST_LADDER_MS } from '../../domain/delivery-outcome';
import type { Order } from '../../db/notifications/orders';
import { progressQuery } from '../../workflows/deliver-notification';
import { until } from '../../testbed/until';
import { keepHistory, localActivities, orderDelivery } from '../support/histories';
import { standingOf, storeStatus, storeTest } from '../../testbed/notifications';
import { timeSkippingServer } from '../support/temporal';
import {
  endOf,
  MOST_BUSY_ROUNDS,
  openStage,
  PARTNER_ID,
  QUEUE,
  timersOf,
  type Delivery,
  type Stage,
} from './time';

const temporal = timeSkippingServer();
let stage: Stage;

beforeAll(async () => {
  stage = await openStage(temporal);
}, 300_000);
afterAll(() => stage?.close());
beforeEach(() => stage.receiver.reset());

const HOUR_MS = 3_600_000;
const order = (wanted: Order, notificationId: string) =>
  orderDelivery({ database: stage.database, client: temporal.client }, wanted, notificationId);
const received = () => stage.receiver.received;
const rowOf = (notificationId: string) => standingOf(stage.database, notificationId);
const attemptsOf = async (notificationId: string) => (await rowOf(notificationId)).attempts;
const regularActivities = async (handle: Delivery) =>
  ((await handle.fetchHistory()).events ?? []).flatMap(
    ({ activityTaskScheduledEventAttributes: scheduled }) => scheduled?.activityType?.name ?? [],
  );

test('a first 2xx ends it, without a timer', async () => {
  const { handle, notificationId } = await stage.start(DELIVERY_LADDER_MS);
  expect(await handle.result()).toEqual({ status: 'delivered', attempts: 1 });
  expect(await timersOf(handle)).toEqual([]);
  expect(await rowOf(notificationId)).toMatchObject({ state: 'delivered', made: 1 });
  await keepHistory('delivered-at-once', handle);
});

test.each([
  ['status notifications', DELIVERY_LADDER_MS, 75.6],
  ['tests', TEST_LADDER_MS, 35 / 3_600],
])('the whole ladder of %s: every step with a jitter that only adds', async (kind, ladderMs, hours) => {
  stage.receiver.behave(() => 500);
  const { handle, notificationId } = await stage.start(ladderMs);
  expect(await endOf(handle)).toMatchObject({
    workflow: 'FAILED',
    reason: 'exhausted',
    message: expect.stringContaining(`attempt ${ladderMs.length} answered 500`),
  });
  const timers = await timersOf(handle);
  expect(timers).toHaveLength(ladderMs.length - 1);
  timers.forEach((timerMs, at) => {
    const stepMs = ladderMs[at + 1] ?? 0;
    const mostMs = Math.min(Math.max(stepMs * 0.1, 1_000), 900_000);
    expect(timerMs).toBeGreaterThanOrEqual(stepMs);
    expect(timerMs).toBeLessThanOrEqual(stepMs + mostMs);
  });
  const steps = ladderMs.reduce((sum, step) => sum + step, 0);
  expect(steps / HOUR_MS).toBeCloseTo(hours, 1);
  expect(received()).toHaveLength(ladderMs.length);
  expect(new Set(received().map(({ body }) => body)).size).toBe(1);
  expect(await rowOf(notificationId)).toMatchObject({
    state: 'failed',
    reason: 'exhausted',
    made: ladderMs.length,
    reserved: false,
  });
  await keepHistory(kind === 'tests' ? 'test-ladder-exhausted' : 'ladder-exhausted', handle);
});

test.each([
  ['7200', 7_200_000, 7_200_000],
  ['999999', 10 * HOUR_MS, 10 * HOUR_MS],
  ['soon', 5_000, 6_000],
])('Retry-After: %s is the later of it and the ladder, at most ten hours', async (value, low, high) => {
  stage.receiver.behave((nth) => (nth === 0 ? { status: 429, headers: { 'Retry-After': value } } : 200));
  const { handle } = await stage.start(DELIVERY_LADDER_MS);
  expect(await handle.result()).toMatchObject({ status: 'delivered', attempts: 2 });
  const [wait = 0] = await timersOf(handle);
  expect(wait).toBeGreaterThanOrEqual(low);
  expect(wait).toBeLessThanOrEqual(high);
  if (value === '7200') await keepHistory('retry-after', handle);
});

test.each([
  ['goes on with its own step at the time that was planned', false],
  ['stays paused, and goes on with its own step', true],
])('a delivery whose workflow is gone %s', async (_what, paused) => {
  stage.receiver.behave((nth) => (nth < 2 ? 500 : 200));
  const ladderMs = [0, HOUR_MS, 3 * HOUR_MS];
  const { sql } = stage.database;
  const { handle, notificationId } = await stage.start(ladderMs);
  const planned = async () =>
    (
      await sql<{ ms: number }[]>`
        select (extract(epoch from next_attempt_at - service_now()) * 1000)::float8 as ms from deliveries
        where notification_id = ${notificationId} and next_attempt_at is not null`
    )[0]?.ms;
  await until(async () => (await timersOf(handle)).length === 1, 'it waits for the second attempt');
  if (paused)
    await sql`update deliveries set paused_at = service_now() where notification_id = ${notificationId}`;
  await handle.terminate();
  const leftMs = (await planned()) ?? Number.NaN;
  expect(await restartNotification(sql, { notificationId, generation: 1 })).toMatchObject({ generation: 2 });

  const next = await stage.deliver(notificationId, ladderMs, 'regular', 2);
  if (paused) {
    await until(async () => (await next.query(progressQuery)).phase === 'paused', 'it is paused');
    await order('resume', notificationId);
  }
  expect(await next.result()).toEqual({ status: 'delivered', attempts: 3 });
  const [first = 0, second = 0] = await timersOf(next);
  expect(first).toBeGreaterThan(leftMs - 10_000);
  expect(first).toBeLessThanOrEqual(leftMs + 1);
  expect(second).toBeGreaterThanOrEqual(3 * HOUR_MS);
  expect(second).toBeLessThanOrEqual(3.3 * HOUR_MS);
  expect(await rowOf(notificationId)).toMatchObject({ state: 'delivered', made: 3 });
  await keepHistory(paused ? 'restarted-paused' : 'restarted', next);
});

describe.each(['regular', 'fast'] as const)('on the %s path', (path) => {
  test('a pause of a week loses no step of the ladder', async () => {
    stage.receiver.behave((nth) => (nth < 3 ? 500 : 200));
    const { handle, notificationId } = await stage.start([0, 60_000, 120_000, 180_000], path);
    await until(async () => (await timersOf(handle)).length === 1, 'it waits for the second attempt');
    await order('pause', notificationId);
    await temporal.env.sleep('7 days');
    expect(received()).toHaveLength(1);
    expect(await handle.query(progressQuery)).toMatchObject({ phase: 'paused', attempts: 1 });
    await order('resume', notificationId);
    expect(await handle.result()).toMatchObject({ status: 'delivered', attempts: 4 });
    expect(await timersOf(handle)).toHaveLength(3);
    const { log } = await handle.query(progressQuery);
    expect(log[1]).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ paused by an operator$/);
    await keepHistory(path === 'fast' ? 'fast-then-paused' : 'paused-and-resumed', handle);
  });

  test('retry now ends a wait, and one given during an attempt is for the next, never beside it', async () => {
    let open = 0;
    let most = 0;
    stage.receiver.behave((nth) => (response) => {
      open += 1;
      most = Math.max(most, open);
      void (async () => {
        if (nth === 0) await order('retry_now', notificationId);
        await new Promise((resolve) => setTimeout(resolve, 300));
        open -= 1;
        response.writeHead(nth < 2 ? 500 : 200).end();
      })();
    });
    const { handle, notificationId } = await stage.start([0, 10 * HOUR_MS, 20 * HOUR_MS], path);
    await until(async () => (await rowOf(notificationId)).made === 2, 'the second attempt, at once');
    await until(() => received().length === 2 && open === 0, 'its end');
    await order('retry_now', notificationId);
    expect(await handle.result()).toMatchObject({ status: 'delivered', attempts: 3 });
    const { startTime, closeTime } = await handle.describe();
    expect((closeTime?.getTime() ?? Infinity) - startTime.getTime()).toBeLessThan(HOUR_MS);
    expect(most).toBe(1);
    await keepHistory(path === 'fast' ? 'fast-retry-now' : 'retry-now', handle);
  });
});

test.each([false, true])(
  'cancelled by an operator, it ends without a further attempt and gives its slot back (paused: %s)',
  async (paused) => {
    stage.receiver.behave(() => 500);
    const { handle, notificationId } = await stage.start([0, HOUR_MS]);
    await until(async () => (await rowOf(notificationId)).made === 1, 'the first attempt');
    if (paused) {
      await order('pause', notificationId);
      await temporal.env.sleep('2 hours');
    }
    await handle.cancel();
    expect(await endOf(handle)).toEqual({ workflow: 'CANCELLED' });
    expect(received()).toHaveLength(1);
    expect(await rowOf(notificationId)).toMatchObject({ state: 'cancelled', reserved: false });
    if (!paused) await keepHistory('cancelled', handle);
  },
);

test.each([
  [503, 'failed', { workflow: 'CANCELLED' }, 'cancelled'],
  [200, 'delivered', { workflow: 'COMPLETED', status: 'delivered', attempts: 1 }, 'delivered'],
])('cancelled during an attempt that is answered %i, it ends by it', async (answer, outcome, end, state) => {
  stage.receiver.behave(
    () => (response) => void handle.cancel().then(() => response.writeHead(answer).end()),
  );
  const { handle, notificationId } = await stage.start([0, HOUR_MS]);
  expect(await endOf(handle)).toEqual(end);
  expect(await rowOf(notificationId)).toMatchObject({ state, made: 1 });
  expect(await attemptsOf(notificationId)).toEqual([outcome]);
  if (answer === 503) await keepHistory('cancelled-during-an-attempt', handle);
});

/** A row as it gets past the checks of an insert: `event_id` in it is what its body has, too. */
const ANOTHER = '01KAF1Z4Q0T6M5S7Y2W3X4V5B6';
test.each([
  ['test', `body = '{"event_id":'`],
  ['test', `body = 'null'`],
  ['test', `event_id = event_id || E'\\nx', body = replace(body, event_id, event_id || '\\nx')`],
  ['test', `event_id = 'evt_${ANOTHER}'`],
  ['test', `event_type = 'credit_application.paid_out'`],
  ['test', `body = replace(body, 'sandbox', 'live')`],
  ['test', `body = replace(body, repeat('0', 26), '${ANOTHER}')`],
  ['test', `body = replace(body, '"status":"test"', '"status":"paid_out"')`],
  ['test', `body = replace(body, '"sequence":1', '"sequence":2')`],
  ['test', `body = replace(body, '"TEST"', '"basket 2041"')`],
  ['status', `application_id = 'app_${ANOTHER}'`],
  ['status', `sequence = 2`],
  ['status', `merchant_reference = 'basket 2041'`],
  ['status', `body = replace(body, '"status":"accepted"', '"status":"paid_out"')`],
])('a %s event whose row and body contradict each other ends as poison, unsent: %s', async (kind, change) => {
  const store = kind === 'test' ? storeTest : storeStatus;
  const { notificationId } = await store(stage.database, { partnerId: PARTNER_ID });
  await stage.database.sql.unsafe(
    `update notifications set ${change} where notification_id = '${notificationId}'`,
  );
  // Both paths open their attempts by one function.
  const handle = await stage.deliver(notificationId, [0, HOUR_MS], kind === 'test' ? 'regular' : 'fast');
  expect(await endOf(handle)).toEqual({ workflow: 'FAILED', reason: 'poison', message: 'not sent' });
  const end = { state: 'failed', reason: 'poison', reserved: false };
  expect(await rowOf(notificationId)).toMatchObject(end);
  expect(received()).toHaveLength(0);
});

test('on the fast path a first 2xx is sent and recorded within one workflow task', async () => {
  const { handle, notificationId } = await stage.start(DELIVERY_LADDER_MS, 'fast');
  expect(await handle.result()).toEqual({ status: 'delivered', attempts: 1 });
  expect(await localActivities(handle)).toEqual(['attemptAtOnce']);
  expect(await regularActivities(handle)).toEqual([]);
  const { events } = await handle.fetchHistory();
  expect((events ?? []).filter(({ workflowTaskStartedEventAttributes: task }) => task)).toHaveLength(1);
  expect(await attemptsOf(notificationId)).toEqual(['delivered']);
  expect(await handle.query(progressQuery)).toMatchObject({
    phase: 'ended',
    log: [expect.stringMatching(/Z attempt 1 delivered: 200/)],
  });
  await keepHistory('fast-recorded-with-its-send', handle);
});

test('on the fast path a first attempt that fails goes on with the ladder, by regular activities', async () => {
  stage.receiver.behave((nth) => (nth < 2 ? 503 : 200));
  const { handle, notificationId } = await stage.start([0, 60_000, 120_000], 'fast');
  expect(await handle.result()).toEqual({ status: 'delivered', attempts: 3 });
  expect(await localActivities(handle)).toEqual(['attemptAtOnce']);
  expect(await regularActivities(handle)).toEqual(['sendAttempt', 'sendAttempt']);
  expect(await timersOf(handle)).toHaveLength(2);
  expect(await attemptsOf(notificationId)).toEqual(['failed', 'failed', 'delivered']);
  await keepHistory('fast-failed-then-ladder', handle);
});

test('on the fast path a record that fails is left to a regular activity, and nothing is sent again', async () => {
  stage.receiver.behave(() => (response) => {
    void stage.database.sql`
      alter table delivery_attempts add constraint not_now check (outcome is null) not valid`.then(() =>
      response.writeHead(200).end(),
    );
  });
  const { handle, notificationId } = await stage.start(DELIVERY_LADDER_MS, 'fast');
  await until(
    async () => (await regularActivities(handle)).join() === 'recordResult',
    'the record is a regular one',
  );
  await stage.database.sql`alter table delivery_attempts drop constraint not_now`;
  expect(await handle.result()).toEqual({ status: 'delivered', attempts: 1 });
  expect(await localActivities(handle)).toEqual(['attemptAtOnce']);
  expect(received()).toHaveLength(1);
  expect(await attemptsOf(notificationId)).toEqual(['delivered']);
  await keepHistory('fast-record-left', handle);
});

describe('when every slot of the endpoint is taken', () => {
  let ends: (() => void)[] = [];
  beforeEach(() => {
    ends = [];
    for (let nth = 0; nth < SENDS_PER_ENDPOINT; nth += 1)
      void stage.sendSlots.run(QUEUE, () => new Promise<void>((resolve) => ends.push(resolve)));
  });
  afterEach(() => ends.forEach((end) => end()));

  /** Starts a delivery and waits until it has got `busy`, and sleeps. */
  async function asleep(ladderMs: readonly number[]) {
    const started = await stage.start(ladderMs);
    const waits = async () => (await started.handle.query(progressQuery)).phase === 'waiting';
    await until(waits, 'a delivery that waits its turn');
    expect(received()).toHaveLength(0);
    expect(await attemptsOf(started.notificationId)).toEqual([]);
    return started;
  }

  test('a delivery waits without an attempt, and with its whole ladder left', async () => {
    stage.receiver.behave((nth) => (nth === 0 ? 503 : 200));
    const { handle } = await asleep([0, 60_000]);
    ends.forEach((end) => end());
    expect(await handle.result()).toEqual({ status: 'delivered', attempts: 2 });
    const timers = await timersOf(handle);
    expect(Math.min(...timers.slice(0, -1))).toBeGreaterThanOrEqual(1_000);
    expect(timers.at(-1)).toBeGreaterThanOrEqual(60_000);
    await keepHistory('busy', handle);
  });

  test('a delivery that finds no slot for long ends, and its next generation continues at the same step', async () => {
    const { handle, notificationId } = await asleep([0]);
    expect(await handle.result()).toEqual({ status: 'queued', attempts: 0 });
    const timers = await timersOf(handle);
    expect(timers).toHaveLength(MOST_BUSY_ROUNDS - 1);
    timers.forEach((timerMs, at) => expect(timerMs).toBeGreaterThanOrEqual(1_000 * 2 ** at));
    expect(received()).toHaveLength(0);
    expect(await rowOf(notificationId)).toMatchObject({ state: 'queued', generation: 2, attempts: [] });
    ends.forEach((end) => end());
    const next = await stage.deliver(notificationId, [0], 'regular', 2);
    expect(await next.result()).toEqual({ status: 'delivered', attempts: 1 });
    await keepHistory('busy-queued-again', handle);
  });

  test('a delivery that is cancelled while it is being queued again is cancelled', async () => {
    const { handle, notificationId } = await asleep([0]);
    const { sql } = stage.database;
    const ended = await sql.begin(async (tx) => {
      await tx`select 1 from deliveries where notification_id = ${notificationId} for update`;
      const end = endOf(handle);
      const blocked = () => sql<{ count: number }[]>`
        select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      await until(async () => (await blocked())[0]?.count === 1, 'its row is locked', 40_000);
      await handle.cancel();
      return { end };
    });
    expect(await ended.end).toEqual({ workflow: 'CANCELLED' });
    expect(await rowOf(notificationId)).toMatchObject({ state: 'cancelled', reason: 'operator' });
  });
});
