import { SENDS_PER_ENDPOINT } from '../../domain/delivery-now';
import { progressQuery } from '../../workflows/deliver-notification';
import { until } from '../support/delivery';
import { keepHistory } from '../support/histories';
import { timeSkippingServer } from '../support/temporal';
import { endOf, QUEUE, openStage, timersOf, type Delivery, type Stage } from './time';

const temporal = timeSkippingServer();
let stage: Stage;
let ends: (() => void)[] = [];

beforeAll(async () => {
  stage = await openStage(temporal);
}, 300_000);
afterAll(() => stage?.close());

// Every place of the endpoint is taken.
beforeEach(() => {
  stage.receiver.received.length = 0;
  stage.receiver.behave(() => 200);
  ends = [];
  for (let nth = 0; nth < SENDS_PER_ENDPOINT; nth += 1) {
    void stage.sendSlots.run(QUEUE, () => new Promise<void>((resolve) => ends.push(resolve)));
  }
});
afterEach(() => ends.forEach((end) => end()));

const attemptsOf = async (notificationId: string) =>
  (
    await stage.database.sql`select attempts from notifications_now where notification_id = ${notificationId}`
  )[0];

/** Waits until it has been told `busy`, and sleeps. */
const asleep = (handle: Delivery) =>
  until(
    async () => (await handle.query(progressQuery)).phase === 'waiting',
    'a delivery that waits its turn',
  );

test('who finds every place taken waits without an attempt, and with its whole ladder left', async () => {
  stage.receiver.behave((nth) => (nth === 0 ? 503 : 200));
  const { handle, notificationId } = await stage.start([0, 60_000]);
  await asleep(handle);
  expect(stage.receiver.received).toHaveLength(0);
  expect(await attemptsOf(notificationId)).toEqual({ attempts: 0 });

  ends.forEach((end) => end());
  expect(await handle.result()).toEqual({ status: 'delivered', attempts: 2 });
  const timers = await timersOf(handle);
  const waits = timers.slice(0, -1);
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(1_000);
  expect(timers.at(-1)).toBeGreaterThanOrEqual(60_000);
  await keepHistory('busy', handle);
});

test('one that waits for a place can be cancelled', async () => {
  const { handle, notificationId } = await stage.start([0]);
  await asleep(handle);
  await handle.cancel();
  expect(await endOf(handle)).toEqual({ workflow: 'CANCELLED' });
  expect(await attemptsOf(notificationId)).toEqual({ attempts: 0 });
});
