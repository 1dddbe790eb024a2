import { DELIVERY_LADDER_MS } from '../../domain/delivery-outcome';
import { SENDS_PER_ENDPOINT } from '../../domain/delivery-now';
import { progressQuery } from '../../workflows/deliver-notification';
import { until } from '../support/delivery';
import { keepHistory, localActivities } from '../support/histories';
import { timeSkippingServer } from '../support/temporal';
import { endOf, openStage, QUEUE, timersOf, type Delivery, type Stage } from './time';

const temporal = timeSkippingServer();
let stage: Stage;

beforeAll(async () => {
  stage = await openStage(temporal);
}, 300_000);
afterAll(() => stage?.close());
beforeEach(() => {
  stage.receiver.received.length = 0;
  stage.receiver.behave(() => 200);
});

const attemptsOf = async (notificationId: string) =>
  (
    await stage.database.sql<{ outcome: string | null }[]>`
      select outcome from delivery_attempts where notification_id = ${notificationId} order by attempt_number`
  ).map(({ outcome }) => outcome);
const regularActivities = async (handle: Delivery) =>
  ((await handle.fetchHistory()).events ?? []).flatMap(
    ({ activityTaskScheduledEventAttributes: scheduled }) => scheduled?.activityType?.name ?? [],
  );

test('a first 2xx is sent and recorded within one workflow task', async () => {
  const { handle, notificationId } = await stage.start(DELIVERY_LADDER_MS, 'fast');
  expect(await handle.result()).toEqual({ status: 'delivered', attempts: 1 });
  expect(await localActivities(handle)).toEqual(['sendAtOnce']);
  expect(await regularActivities(handle)).toEqual([]);
  const { events } = await handle.fetchHistory();
  expect((events ?? []).filter(({ workflowTaskStartedEventAttributes: task }) => task)).toHaveLength(1);
  expect(await attemptsOf(notificationId)).toEqual(['delivered']);
  expect(await handle.query(progressQuery)).toMatchObject({
    phase: 'ended',
    log: [expect.stringMatching(/^attempt 1 delivered: 200/)],
  });
  await keepHistory('fast-recorded-with-its-send', handle);
});

test('a first attempt that fails goes on with the ladder, by regular activities', async () => {
  stage.receiver.behave((nth) => (nth < 2 ? 503 : 200));
  const { handle, notificationId } = await stage.start([0, 60_000, 120_000], 'fast');
  expect(await handle.result()).toEqual({ status: 'delivered', attempts: 3 });
  expect(await localActivities(handle)).toEqual(['sendAtOnce']);
  expect(await regularActivities(handle)).toEqual([
    'recordResult',
    'sendAttempt',
    'recordResult',
    'sendAttempt',
    'recordResult',
  ]);
  expect(await timersOf(handle)).toHaveLength(2);
  expect(await attemptsOf(notificationId)).toEqual(['failed', 'failed', 'delivered']);
  await keepHistory('fast-failed-then-ladder', handle);
});

test('410 at once ends it', async () => {
  stage.receiver.behave(() => 410);
  const { handle } = await stage.start(DELIVERY_LADDER_MS, 'fast');
  expect(await endOf(handle)).toMatchObject({
    workflow: 'FAILED',
    reason: 'gone',
    message: expect.stringMatching(/^attempt 1 answered 410/),
  });
  await stage.database.sql`update webhook_endpoints set state = 'active' where state = 'disabled'`;
  await keepHistory('fast-gone', handle);
});

test('without a place, as after a crash, the first attempt is a regular one', async () => {
  const { handle, notificationId } = await stage.start(DELIVERY_LADDER_MS, 'fast without a place');
  expect(await handle.result()).toEqual({ status: 'delivered', attempts: 1 });
  expect(await localActivities(handle)).toEqual(['sendAtOnce']);
  expect(await regularActivities(handle)).toEqual(['sendAttempt', 'recordResult']);
  expect(stage.receiver.received).toHaveLength(1);
  expect(await attemptsOf(notificationId)).toEqual(['delivered']);
  await keepHistory('fast-declined', handle);
});

test('a record that fails is left to a regular activity, and nothing is sent again', async () => {
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
  expect(await localActivities(handle)).toEqual(['sendAtOnce']);
  expect(stage.receiver.received).toHaveLength(1);
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
    expect(stage.receiver.received).toHaveLength(0);
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

  test('a delivery that waits can be cancelled', async () => {
    const { handle } = await asleep([0]);
    await handle.cancel();
    expect(await endOf(handle)).toEqual({ workflow: 'CANCELLED' });
  });
});
