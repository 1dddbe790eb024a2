import { retentionScheduleId } from '../../runtime/temporal/retention-schedule';
import type { ApplyRetentionInput } from '../../workflows/apply-retention';
import { openTestDatabase, type OpenTestDatabase } from '../support/database';
import { startTestWorker, until, type TestWorker } from '../support/delivery';
import { newKeyRingText } from '../support/notifications';
import { makePastMonth, monthOf, storeOldNotification, storeOldQuote } from '../support/old-rows';
import { randomTaskQueue, testTemporal } from '../support/temporal';
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver';

const temporal = testTemporal();
const taskQueue = randomTaskQueue('retention');
const keys = newKeyRingText();
let database: OpenTestDatabase;
let receiver: WebhookReceiver;
const workers: TestWorker[] = [];

beforeAll(async () => {
  database = await openTestDatabase({ poolSize: 2 });
  receiver = await startWebhookReceiver();
});
afterAll(async () => {
  await temporal.env.client.schedule
    .getHandle(retentionScheduleId(taskQueue))
    .delete()
    .catch(() => undefined);
  for (const worker of workers) await worker.close();
  await receiver?.close();
  await database?.close();
});

const start = async (environment: Record<string, string>) => {
  const worker = await startTestWorker({
    databaseUrl: database.url,
    temporal,
    taskQueue,
    receiver,
    keys,
    environment,
  });
  workers.push(worker);
};
const schedule = () => temporal.env.client.schedule.getHandle(retentionScheduleId(taskQueue));
/** What it does and when; null while it is not there. */
const described = async () => {
  const found = await schedule()
    .describe()
    .catch(() => null);
  if (found === null) return null;
  const { action, policies, spec, state } = found;
  const [calendar] = spec.calendars ?? [];
  const [input] = (action.type === 'startWorkflow' && action.args) || [];
  const { days } = input as ApplyRetentionInput;
  return { days, policies, hour: calendar?.hour, minute: calendar?.minute, paused: state.paused };
};

test('a worker makes the schedule, the next one brings it up to its settings, and a pause stays', async () => {
  await start({ RETENTION_AT: '02:40' });
  await until(async () => (await described()) !== null, 'the schedule');
  expect(await described()).toMatchObject({
    days: { payloads: 90, attempts: 400, notifications: 2_557, quotes: 2_557 },
    policies: { overlap: 'SKIP', catchupWindow: 12 * 3_600_000 },
    hour: [expect.objectContaining({ start: 2 })],
    minute: [expect.objectContaining({ start: 40 })],
    paused: false,
  });
  await schedule().pause('looking into something');
  await start({ RETENTION_AT: '02:40', RETENTION_QUOTES_DAYS: '800' });
  await until(async () => (await described())?.days.quotes === 800, 'the new settings');
  expect((await described())?.paused).toBe(true);
  await schedule().unpause();
}, 120_000);

test('its workflow removes what is past its time, and tells by its result how much', async () => {
  await makePastMonth(database, monthOf(3_000));
  await storeOldNotification(database, 3_000);
  await storeOldNotification(database, 100);
  const kept = await storeOldNotification(database, 3_000, 'held');
  await storeOldQuote(database, 900);
  await schedule().trigger();
  const { recentActions } = await until(
    async () => (await schedule().describe()).info.recentActions.length > 0,
    'a run',
  ).then(async () => (await schedule().describe()).info);
  const [run] = recentActions;
  if (run?.action.type !== 'startWorkflow') throw new Error('nothing was started');
  const { workflowId, firstExecutionRunId } = run.action.workflow;
  const result = await temporal.env.client.workflow.getHandle(workflowId, firstExecutionRunId).result();
  expect(result).toEqual({ payloads: 2, attempts: 1, notifications: 1, quotes: 1 });
  const left = await database.sql`select notification_id as id from notifications order by 1`;
  expect(left.map(({ id }) => id)).toContain(kept);
  expect(left).toHaveLength(2);
  expect(await database.sql`select distinct actor from change_log`).toEqual([{ actor: 'retention' }]);
}, 120_000);

test('switched off, the schedule goes', async () => {
  await start({ RETENTION_AT: 'off' });
  await until(async () => (await described()) === null, 'the end of the schedule');
}, 60_000);
