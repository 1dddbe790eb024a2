import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { createPartner } from '../../db/catalogue/partners';
import { useDatabase } from '../support/database';
import { until } from '../support/delivery';
import {
  addEndpoint,
  newKeyRingText,
  setServiceClock,
  startServiceClock,
  storeTest,
} from '../support/notifications';
import { randomTaskQueue, testTemporal } from '../support/temporal';
import { RECEIVER_NAME, startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process';

/** Real workers whose wall clock is wrong, and partners whose receivers verify signatures as their library does. */

const temporal = testTemporal();
const PARTNERS = ['P100001', 'P100002', 'P100003'];
const keys = newKeyRingText();
const secrets = new Map<string, string>();
const database = useDatabase({ statementTimeoutMs: 0 });
let receiver: WebhookReceiver;
let worker: WorkerProcess | undefined;

beforeAll(async () => {
  receiver = await startWebhookReceiver();
  for (const partnerId of PARTNERS) {
    await createPartner(database.db, { partnerId, name: partnerId });
    const host = `${partnerId.toLowerCase()}.${RECEIVER_NAME}`;
    const url = receiver.url.replace(RECEIVER_NAME, host);
    secrets.set(host, (await addEndpoint(database, { partnerId, url, keyRing: keys })).secret);
  }
}, 60_000);
afterEach(async () => {
  await worker?.close();
  await setServiceClock(database, null);
  await database.sql`truncate notifications, deliveries, delivery_attempts, monthly_counts`;
});
afterAll(() => receiver.close());

async function startSkewed(skewMs: number): Promise<WorkerProcess> {
  const targets = [...secrets.keys()].map((host) => `${host}:${receiver.port}`);
  worker = await startWorkerProcess({
    databaseUrl: database.url,
    temporal,
    taskQueue: randomTaskQueue('skewed'),
    receiver,
    keys,
    environment: {
      NODE_OPTIONS: `--require ${join(__dirname, '../support/skewed-clock.cjs')}`,
      CLOCK_SKEW_MS: String(skewMs),
      WEBHOOK_LOCAL_TARGETS: targets.join(','),
      TEST_LADDER_SECONDS: '0,2',
    },
  });
  await worker.ready();
  return worker;
}

/** Accepts what verifies: the library bears five minutes. @returns what was wrong with the others */
function verifying(): string[] {
  const faults: string[] = [];
  receiver.behave((_nth, { headers, body }) => {
    const secret = secrets.get(String(headers.host).split(':', 1)[0] ?? '') ?? '';
    try {
      new Webhook(secret).verify(body, headers as Record<string, string>);
      return 200;
    } catch (error) {
      faults.push((error as Error).message);
      return 400;
    }
  });
  return faults;
}

const open = () => database.sql`select 1 from notifications_now where state in ('queued', 'started')`;
const ended = () => until(async () => (await open()).length === 0, 'the end of every notification', 40_000);
const counts = () => database.sql`select month::text, delivered, failed, reserved from monthly_counts`;
const skewOf = async (process: WorkerProcess) =>
  Number(/^pfqs_clock_skew_seconds (\S+)$/m.exec(await process.metrics())?.[1]);

test.each([
  [10, 'Message timestamp too new'],
  [-10, 'Message timestamp too old'],
])(
  'a worker whose clock is %d minutes off is refused by receivers, alerts, and counts in the right month',
  async (minutes, fault) => {
    const faults = verifying();
    const process = await startSkewed(minutes * 60_000);
    expect(await skewOf(process)).toBeNaN();
    // Seconds into a year that the worker's own clock does not know of.
    await startServiceClock(database, '2031-01-01T00:00:01Z');
    for (const partnerId of PARTNERS) await storeTest(database, { partnerId });
    await ended();

    expect(faults).toEqual(Array.from({ length: 6 }, () => fault));
    const attempts = await database.sql`select failure, http_status from delivery_attempts`;
    const words = attempts.map((one) => `${one['failure']} ${one['http_status']}`);
    expect(new Set(words)).toEqual(new Set(['http_status 400']));
    expect(Math.abs((await skewOf(process)) - minutes * 60)).toBeLessThan(10);
    const alerts = process.output().match(/the clock of this machine is wrong/g);
    expect(alerts).toHaveLength(1);
    expect(process.output()).toMatch(/"skewSeconds":-?(59\d|60\d),"endpoints":3/);
    const failed = { month: '2031-01-01', delivered: 0, failed: 1, reserved: 0 };
    expect(await counts()).toEqual(PARTNERS.map(() => failed));
  },
  90_000,
);

test('a clock that steps back during a wait changes neither the wait nor the month', async () => {
  const process = await startSkewed(0);
  receiver.received.length = 0;
  receiver.behave((nth) => {
    if (nth > 0) return 200;
    process.child.kill('SIGUSR2');
    return 500;
  });
  const [{ month } = { month: '' }] = await database.sql<{ month: string }[]>`
    select service_month()::text as month`;
  await storeTest(database, { partnerId: 'P100001' });
  await ended();
  const [first, second] = receiver.received;
  if (first === undefined || second === undefined) throw new Error('two attempts were expected');
  const [before, after] = [first, second].map(({ headers }) => Number(headers['webhook-timestamp']));
  expect((before ?? 0) - (after ?? 0)).toBeGreaterThan(3_500);
  // The step of the ladder and its jitter, by a clock that did not step.
  expect(second.atMs - first.atMs).toBeGreaterThanOrEqual(1_990);
  expect(second.atMs - first.atMs).toBeLessThan(20_000);
  expect(await counts()).toEqual([{ month, delivered: 1, failed: 0, reserved: 0 }]);
}, 60_000);
