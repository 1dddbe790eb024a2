import { until } from '../../testbed/until';
import { startServiceClock, setServiceClock } from '../../testbed/notifications';
import { testTemporal } from '../support/temporal';
import { openScene, type Called, type Scene } from './scene';

/** The strict limit of 100 successful test deliveries per partner, environment and UTC month, under 250 calls at once. */

const temporal = testTemporal();
let scene: Scene;
/** The most that was ever delivered and under way in one month. */
let most = 0;
let watching: NodeJS.Timeout;

beforeAll(async () => {
  scene = await openScene(temporal);
  await scene.startWorker();
  watching = setInterval(() => {
    void scene.counts().then(
      (months) => (most = Math.max(most, ...months.map(({ delivered, reserved }) => delivered + reserved))),
      () => undefined,
    );
  }, 100);
}, 120_000);
afterAll(async () => {
  clearInterval(watching);
  await scene?.close();
});
afterEach(() => expect(most).toBeLessThanOrEqual(100));

const accepted = (answers: readonly Called[]) => answers.filter(({ status }) => status < 300);

/** Whatever was not accepted was refused for the limit: no 500, no other refusal. */
function expectRefused(answers: readonly Called[], refused: number): void {
  const others = answers.filter(({ status }) => status >= 300);
  expect(others.map(({ status, code }) => `${status} ${code}`)).toEqual(
    Array.from({ length: refused }, () => '429 TEST_NOTIFICATION_LIMIT_REACHED'),
  );
}

test('250 calls at once through four keys and two processes: 100 are delivered, 150 are refused', async () => {
  await scene.begin('2026-11-10T12:00:00Z');
  const answers = await scene.fire(250);
  expectRefused(answers, 150);
  expect(accepted(answers)).toHaveLength(100);
  await scene.quiet();
  expect(scene.taken.size).toBe(100);
  expect(await scene.counts()).toEqual([{ month: '2026-11-01', delivered: 100, failed: 0, reserved: 0 }]);
  expectRefused(await scene.fire(30), 30);
}, 180_000);

test('accepted at 23:59:59.9 on the last day, delivered in the new month: neither has more than it may', async () => {
  await scene.stopWorker();
  await scene.begin(null);
  await setServiceClock(scene.database, '2027-01-31T23:59:59.9Z');
  let refused = 0;
  const january = scene.fire(250, scene.keys, ({ status }) => (refused += Number(status === 429)));
  const held = async (month: string) =>
    (await scene.counts()).find((count) => count.month === month)?.reserved ?? 0;
  await until(async () => (await held('2027-01-01')) === 100, 'a hundred places of January', 60_000);
  // A call of January that is still on its way when the month ends would rightly take a place of February.
  await until(() => refused === 150, 'every other call of January is refused', 60_000);
  await startServiceClock(scene.database, '2027-02-01T00:00:00.1Z');
  const february = scene.fire(30);
  await until(async () => (await held('2027-02-01')) === 30, 'thirty places of February', 60_000);
  await scene.startWorker();

  expectRefused(await january, 150);
  expectRefused(await february, 0);
  await scene.quiet();
  expect(await scene.counts()).toEqual([{ month: '2027-02-01', delivered: 100, failed: 30, reserved: 0 }]);
  expect(scene.taken.size).toBe(100);
  const ends = await scene.database.sql`
    select state, end_reason, attempts, count(*)::int from notifications_now group by 1, 2, 3 order by 1`;
  expect(ends).toEqual([
    { state: 'delivered', end_reason: null, attempts: 1, count: 100 },
    { state: 'failed', end_reason: 'monthly_limit', attempts: 0, count: 30 },
  ]);
  expectRefused(await scene.fire(20), 20);
}, 180_000);
