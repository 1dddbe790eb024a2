import type { WorkflowFailedError } from '@temporalio/client';
import type { ApplicationFailure } from '@temporalio/common';
import { listOperatorEvents } from '../../db/audit/operator-events';
import { describeOperatorEvent } from '../../domain/operator-event';
import { keepRetentionDays } from '../../db/retention/days';
import { USUAL_RETENTION_DAYS } from '../../domain/retention';
import { retentionScheduleId } from '../../runtime/temporal/retention-schedule';
import { temporalOrders } from '../../ops/temporal';
import { until } from '../../testbed/until';
import { makePastMonth, monthOf, storeOldNotification, storeOldQuote } from '../support/old-rows';
import { useWorkers } from '../support/service';
import { randomTaskQueue, testTemporal } from '../support/temporal';

const temporal = testTemporal();
const { database, start, stop, taskQueue, workers } = useWorkers(temporal);

beforeAll(() =>
  keepRetentionDays(database.db, { days: { ...USUAL_RETENTION_DAYS, quotes: 800 }, shorten: true }),
);
afterAll(() =>
  schedule()
    .delete()
    .catch(() => undefined),
);

const schedule = () => temporal.client.schedule.getHandle(retentionScheduleId(taskQueue));
/** What it does and when; null while it is not there. */
const described = async () => {
  const found = await schedule()
    .describe()
    .catch(() => null);
  if (found === null) return null;
  const { action, policies, spec, state } = found;
  const [calendar] = spec.calendars ?? [];
  const args = action.type === 'startWorkflow' ? (action.args ?? []) : [];
  return { args, policies, hour: calendar?.hour, minute: calendar?.minute, paused: state.paused };
};

test('a worker makes the schedule, the next one brings it up to its settings, and a pause stays', async () => {
  await start({ RETENTION_AT: '02:40' });
  await until(async () => (await described()) !== null, 'the schedule');
  expect(await described()).toMatchObject({
    args: [],
    policies: { overlap: 'SKIP', catchupWindow: 12 * 3_600_000 },
    hour: [expect.objectContaining({ start: 2 })],
    minute: [expect.objectContaining({ start: 40 })],
    paused: false,
  });
  await schedule().pause('looking into something');
  await stop();
  await start({ RETENTION_AT: '03:50' });
  const moved = expect.objectContaining({ start: 50 }) as unknown;
  await until(async () => (await described())?.minute?.[0]?.start === 50, 'the new settings');
  expect(await described()).toMatchObject({ minute: [moved], paused: true });
  await schedule().unpause();
});

test('its workflow removes what is past its time, and tells by its result how much', async () => {
  await makePastMonth(database, monthOf(3_000));
  await storeOldNotification(database, 3_000);
  await storeOldNotification(database, 100);
  const kept = await storeOldNotification(database, 3_000, 'held');
  await storeOldQuote(database, 900);
  await schedule().trigger();
  const runs = async () => (await schedule().describe()).info.recentActions;
  await until(async () => (await runs()).length > 0, 'a run');
  const [run] = await runs();
  if (run?.action.type !== 'startWorkflow') throw new Error('nothing was started');
  const { workflowId, firstExecutionRunId } = run.action.workflow;
  const result = await temporal.client.workflow.getHandle(workflowId, firstExecutionRunId).result();
  expect(result).toEqual({ payloads: 2, attempts: 1, notifications: 1, quotes: 1 });
  const left = await database.sql`select notification_id as id from notifications_now order by 1`;
  expect(left.map(({ id }) => id)).toContain(kept);
  expect(left).toHaveLength(2);
  expect(
    await database.sql`select distinct actor, login from change_log where action like 'retention.%' and change_id > 1`,
  ).toEqual([{ actor: 'quotes_worker', login: 'quotes_worker' }]);
});

test('by hand it is started besides, once at a time, and goes by the days of the database', async () => {
  const { address, namespace } = temporal;
  const startRetention = (at: string, queue: string) =>
    temporalOrders(
      { namespace, connection: { address: at } },
      { taskQueue: queue, deployment: 'none' },
    ).startRetention();
  await storeOldQuote(database, 900);
  await startRetention(address, taskQueue);
  const run = temporal.client.workflow.getHandle(`${retentionScheduleId(taskQueue)}/by-hand`);
  expect(await run.result()).toMatchObject({ quotes: 1 });
  const idle = `${taskQueue}-idle`;
  await startRetention(address, idle);
  await expect(startRetention(address, idle)).rejects.toThrow('still under way');
  await temporal.client.workflow
    .getHandle(`${retentionScheduleId(idle)}/by-hand`)
    .terminate('nobody works on it');
  await expect(startRetention('127.0.0.1:1', taskQueue)).rejects.toThrow('Temporal cannot be reached');
});

test('a run that removes more than comes of age in a day says so: to operators, in a metric and in the log; the next run does not', async () => {
  const events = async () =>
    (await listOperatorEvents(database.db, { since: '2020-01-01', limit: 10 })).filter(
      ({ kind }) => kind === 'retention_removed_much',
    );
  const store = async (daysAgo: number, count: number) => {
    await makePastMonth(database, monthOf(daysAgo));
    for (let nth = 0; nth < count; nth += 1) await storeOldQuote(database, daysAgo);
  };
  await store(1_000, 150);
  expect(await run()).toMatchObject({ quotes: 150 });
  expect(await events()).toEqual([]);

  await store(1_000, 150);
  await store(1_100, 120);
  expect(await run()).toMatchObject({ quotes: 270 });
  const [event, ...more] = await events();
  expect(more).toEqual([]);
  const [first, last] = [1_100, 1_000].map((daysAgo) => monthOf(daysAgo).replace('_', '-'));
  expect(event).toMatchObject({
    partnerId: null,
    environment: null,
    details: { what: 'quotes', rows: 270, periods: 2, first, last },
  });
  const said = `one run removed 270 rows of quotes, of ${first} to ${last}`;
  expect(describeOperatorEvent('retention_removed_much', event?.details ?? {})).toContain(said);
  expect(workers.flatMap(({ logs }) => logs).filter((line) => line.includes(said))).toHaveLength(1);
  const pages = await Promise.all(workers.map(({ worker }) => worker.registry.metrics()));
  expect(pages.join('')).toContain('pfqs_retention_removed_much_total{kind="quotes"} 120');

  expect(await run()).toMatchObject({ quotes: 0 });
  expect(await events()).toHaveLength(1);
});

/** What is left, and the partitions of months. */
const stock = async () => ({
  quotes: await database.sql`select quote_id from quotes order by 1`,
  notifications: await database.sql`select notification_id, body from notifications_now order by 1`,
  attempts: await database.sql`select notification_id, answer from delivery_attempts order by 1`,
  months: await database.sql`
    select relname from pg_class where relname ~ '_[0-9]{4}_[0-9]{2}$' and relkind = 'r' order by 1`,
  marks: await database.sql`select kind, done_up_to from retention_marks`,
});
const run = (...args: unknown[]) =>
  temporal.client.workflow
    .execute('applyRetention', { taskQueue, workflowId: `forged/${randomTaskQueue()}`, args })
    .then(
      (result) => result as unknown,
      (error: WorkflowFailedError) => (error.cause?.cause as ApplicationFailure | undefined)?.type,
    );

test('what anybody tells its workflow removes nothing that is to be kept, and is logged as refused', async () => {
  await makePastMonth(database, monthOf(60));
  await storeOldQuote(database, 60);
  await storeOldQuote(database, 1);
  await storeOldNotification(database, 60);
  const before = await stock();
  const days = { payloads: -1, attempts: -1, notifications: -1, quotes: -1 };
  const forged = [
    { days },
    { days, from: { kind: 'quotes', cursor: null } },
    { kind: 'quotes', cursor: null, days: -1 },
    { kind: 'quotes', cursor: 'qte_00000000000000000000000000' },
    { kind: 'payloads', cursor: '' },
    { kind: 'payloads', cursor: `ntf_${'Z'.repeat(26)}` },
    { kind: 'payloads', cursor: "ntf_' or true --" },
    { kind: 'change_log', cursor: null },
    { kind: 'constructor', cursor: null },
    -1,
    'quotes',
    [],
  ];
  for (const input of forged) expect([input, await run(input)]).toEqual([input, 'retention_refused']);
  const none = { payloads: 0, attempts: 0, notifications: 0, quotes: 0 };
  for (const args of [[], [null], [null, { days }]]) expect(await run(...args)).toEqual(none);
  expect(await run({ kind: 'quotes', cursor: null })).toEqual({ quotes: 0 });
  expect(await stock()).toEqual(before);
  const refusals = workers
    .flatMap(({ logs }) => logs)
    .filter((line) => line.includes('the retention refused'));
  expect(refusals).toHaveLength(forged.length);
});

test('switched off, the schedule goes', async () => {
  await start({ RETENTION_AT: 'off' });
  await until(async () => (await described()) === null, 'the end of the schedule');
});
