import { join } from 'node:path';
import { generateWebhookSecret } from '../../db/endpoints/secrets';
import { useCrashScene } from '../support/crash-scene';
import { metricIn } from '../../testbed/http-call';
import { setServiceClock, startServiceClock } from '../../testbed/notifications';
import { testTemporal } from '../support/temporal';
import { RECEIVER_NAME, verifySignatures } from '../support/webhook-receiver';
import type { WorkerProcess } from '../support/worker-process';

/** Real workers whose wall clock is wrong, and partners whose receivers verify as their library does. */

const temporal = testTemporal();
const PARTNERS = ['P100001', 'P100002', 'P100003'];
const scene = useCrashScene(() => ({ temporal, others: PARTNERS.slice(1) }));

beforeAll(async () => {
  // Each has a host of its own, as a worker compares its clock with those of three hosts or more.
  await scene.database.sql`
    update webhook_endpoints set url = replace(url, ${RECEIVER_NAME}, lower(partner_id) || ${`.${RECEIVER_NAME}`})`;
});
afterEach(() => setServiceClock(scene.database, null));

async function startSkewed(skewMs: number): Promise<WorkerProcess> {
  const targets = PARTNERS.map((id) => `${id.toLowerCase()}.${RECEIVER_NAME}:${scene.receiver.port}`);
  const worker = await scene.worker({
    NODE_OPTIONS: `--require ${join(__dirname, '../support/skewed-clock.cjs')}`,
    CLOCK_SKEW_MS: String(skewMs),
    WEBHOOK_LOCAL_TARGETS: targets.join(','),
    TEST_LADDER_SECONDS: '0,2',
  });
  await worker.ready();
  return worker;
}

/** Refuses what does not verify. The library checks the time before the signature, so one secret serves for all. @returns the faults */
function verifying(): string[] {
  const faults: string[] = [];
  const secret = generateWebhookSecret();
  scene.receiver.behave((_nth, request) => {
    try {
      verifySignatures(request, secret);
      return 200;
    } catch (error) {
      faults.push((error as Error).message);
      return 400;
    }
  });
  return faults;
}

const counts = () => scene.database.sql`select month::text, delivered, failed, reserved from monthly_counts`;
const skewOf = async (worker: WorkerProcess) => metricIn(await worker.metrics(), 'pfqs_clock_skew_seconds');

test.each([
  [10, 'Message timestamp too new'],
  [-10, 'Message timestamp too old'],
])(
  'a worker whose clock is %d minutes off is refused by receivers, alerts, and counts in the right month',
  async (minutes, fault) => {
    const faults = verifying();
    const worker = await startSkewed(minutes * 60_000);
    expect(await skewOf(worker)).toBeNaN();
    // Seconds into a year that the worker's own clock does not know of.
    await startServiceClock(scene.database, '2031-01-01T00:00:01Z');
    for (const partnerId of PARTNERS) await scene.storeTest(partnerId);
    await scene.ended();

    expect(faults).toEqual(Array.from({ length: 6 }, () => fault));
    const attempts = await scene.database.sql`select failure, http_status from delivery_attempts`;
    const words = attempts.map((one) => `${one['failure']} ${one['http_status']}`);
    expect(new Set(words)).toEqual(new Set(['http_status 400']));
    expect(Math.abs((await skewOf(worker)) - minutes * 60)).toBeLessThan(10);
    const alerts = worker.output().match(/the clock of this machine is wrong/g);
    expect(alerts).toHaveLength(1);
    expect(worker.output()).toMatch(/"skewSeconds":-?(59\d|60\d),"endpoints":3/);
    const failed = { month: '2031-01-01', delivered: 0, failed: 1, reserved: 0 };
    expect(await counts()).toEqual(PARTNERS.map(() => failed));
  },
  90_000,
);

test('a clock that steps back during a wait changes neither the wait nor the month', async () => {
  const worker = await startSkewed(0);
  scene.receiver.behave((nth) => {
    if (nth > 0) return 200;
    worker.child.kill('SIGUSR2');
    return 500;
  });
  const [{ month } = { month: '' }] = await scene.database.sql<{ month: string }[]>`
    select service_month()::text as month`;
  await scene.storeTest();
  await scene.ended();
  const [first, second] = scene.receiver.received;
  if (first === undefined || second === undefined) throw new Error('two attempts were expected');
  const [before, after] = [first, second].map(({ headers }) => Number(headers['webhook-timestamp']));
  expect((before ?? 0) - (after ?? 0)).toBeGreaterThan(3_500);
  // The step of the ladder and its jitter, by a clock that did not step.
  expect(second.atMs - first.atMs).toBeGreaterThanOrEqual(1_990);
  expect(second.atMs - first.atMs).toBeLessThan(20_000);
  expect(await counts()).toEqual([{ month, delivered: 1, failed: 0, reserved: 0 }]);
});
