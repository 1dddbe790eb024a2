import { issueKey } from '../../db/keys';
import type { Answer } from '../../testbed/http-call';
import { setServiceClock, startServiceClock } from '../../testbed/notifications';
import { until } from '../../testbed/until';
import type { ApiProcess } from '../support/api-process';
import { openCrashScene, type CrashScene } from '../support/crash-scene';
import { testTemporal } from '../support/temporal';
import type { WorkerProcess } from '../support/worker-process';

/**
 * The strict limit of 100 successful test deliveries per partner, environment and UTC month: four sandbox keys, two API processes
 * and a database, each in a time zone of its own, and a worker that can be away.
 */
const temporal = testTemporal();
let scene: CrashScene;
const sandbox: string[] = [];
/** Of the environment that has no endpoint. */
let liveKey = '';
let apis: readonly ApiProcess[] = [];
let worker: WorkerProcess | undefined;
/** Event ids that the receiver has answered with a 2xx. */
const taken = new Set<string>();
/** The most that was ever delivered and under way in one month. */
let most = 0;
let watching: NodeJS.Timeout;

const startWorker = async () => {
  worker = await scene.worker({ TEST_LADDER_SECONDS: '0,0', DISPATCH_SWEEP_MS: '250' });
  await worker.ready();
};

beforeAll(async () => {
  scene = await openCrashScene({ temporal });
  const newKey = async (environment: 'sandbox' | 'live') => {
    const wanted = { partnerId: scene.partnerId, environment, expiresInSeconds: null };
    return (await scene.database.db.transaction((tx) => issueKey(tx, wanted))).key;
  };
  for (let nth = 0; nth < 4; nth += 1) sandbox.push(await newKey('sandbox'));
  liveKey = await newKey('live');
  // For every session that does not say otherwise.
  await scene.database.sql`do $$ begin
    execute format('alter database %I set timezone = ''America/New_York''', current_database()); end $$`;
  const zones = ['Pacific/Auckland', 'Europe/London'];
  apis = await Promise.all(zones.map((TZ) => scene.api({ LOG_LEVEL: 'warn', TZ })));
  await startWorker();
  watching = setInterval(() => {
    void counts().then(
      (months) => (most = Math.max(most, ...months.map(({ delivered, reserved }) => delivered + reserved))),
      () => undefined,
    );
  }, 100);
});
afterAll(async () => {
  clearInterval(watching);
  await scene?.close();
});
afterEach(() => expect(most).toBeLessThanOrEqual(100));

type Called = Answer & { readonly code: string | null };

/** That many test calls at once, by turns through the keys and the processes; `answered` receives each answer at once. */
const fire = (
  calls: number,
  keys: readonly string[] = sandbox,
  answered: (called: Called) => void = () => undefined,
): Promise<Called[]> =>
  Promise.all(
    Array.from({ length: calls }, async (_, nth) => {
      const api = apis[nth % apis.length] as ApiProcess;
      const answer = await api.call({ path: '/v1/notifications/test', key: keys[nth % keys.length] ?? '' });
      const called = { ...answer, code: answer.body.error?.code ?? null };
      answered(called);
      return called;
    }),
  );
/** The receiver answers so from now on; what it takes is counted. */
const answer = (status: () => number | Promise<number>) =>
  scene.receiver.behave((_nth, { eventId }) => (response) => {
    void (async () => {
      const code = await status();
      if (code < 300) taken.add(eventId);
      response.writeHead(code).end();
    })();
  });
const counts = async () => [
  ...(await scene.database.sql<{ month: string; delivered: number; failed: number; reserved: number }[]>`
    select month::text, delivered, failed, reserved from monthly_counts
    where delivered + failed + reserved > 0 order by month, environment`),
];
const quiet = () => scene.ended(150_000);

/**
 * Forgets notifications and counts, lets the receiver take everything, and lets the clock run on from a moment: on a stopped one no
 * lease ends, and nothing that was put off is ever due.
 * @param before delivered in the month already
 */
async function begin(clock: string, before = 0): Promise<void> {
  await startServiceClock(scene.database, clock);
  await scene.reset();
  taken.clear();
  answer(() => 200);
  if (before > 0)
    await scene.database.sql`
      insert into monthly_counts (partner_id, environment, month, event_type, delivered)
      values ('P100001', 'sandbox', service_month(), 'credit_application.test', ${before})`;
}

const accepted = (answers: readonly Called[]) => answers.filter(({ status }) => status < 300);

/** Whatever was not accepted was refused for the limit: no 500, no other refusal. */
function expectRefused(answers: readonly Called[], refused: number): void {
  const others = answers.filter(({ status }) => status >= 300);
  expect(others.map(({ status, code }) => `${status} ${code}`)).toEqual(
    Array.from({ length: refused }, () => '429 TEST_NOTIFICATION_LIMIT_REACHED'),
  );
}

const NOVEMBER = '2026-11-10T12:00:00Z';
const november = (delivered: number, failed = 0) => [{ month: '2026-11-01', reserved: 0, delivered, failed }];

test('250 calls at once through four keys and two processes: 100 are delivered, 150 are refused', async () => {
  await begin(NOVEMBER);
  const answers = await fire(250);
  expectRefused(answers, 150);
  expect(accepted(answers)).toHaveLength(100);
  await quiet();
  expect(taken.size).toBe(100);
  expect(await counts()).toEqual(november(100));
  expectRefused(await fire(30), 30);
}, 180_000);

test('with 99 delivered, of two calls at once exactly one is accepted', async () => {
  for (let times = 0; times < 3; times += 1) {
    await begin(NOVEMBER, 99);
    expectRefused(await fire(2), 1);
    await quiet();
    expect(await counts()).toEqual(november(100));
    expect(taken.size).toBe(1);
  }
});

test('with 99 delivered and one under way the next is 429, until that one fails and frees its unit', async () => {
  await begin(NOVEMBER, 99);
  let decide: (status: number) => void = () => {};
  const decision = new Promise<number>((resolve) => (decide = resolve));
  answer(() => decision);
  const pending = fire(1);
  await until(() => scene.receiver.received.length === 1, 'it is under way');
  const [refused] = await fire(1);
  expect(refused).toMatchObject({
    status: 429,
    headers: { 'retry-after': '60' },
    body: { error: { details: { limit: 100, delivered: 99, in_progress: 1 } } },
  });
  decide(500);
  expect((await pending)[0]?.status).toBe(202);
  await quiet();
  answer(() => 200);
  expectRefused(await fire(1), 0);
  await quiet();
  expect(await counts()).toEqual(november(100, 1));
});

test.each([
  ['2026-03-31T23:30:00Z', '2026-03-01', '2026-04-01', 'London is an hour ahead, in April'],
  ['2026-11-01T02:00:00Z', '2026-11-01', '2026-12-01', 'New York is still in October'],
  ['2026-12-31T23:30:00Z', '2026-12-01', '2027-01-01', 'Auckland is in the next year'],
])(
  'at %s the month is that of %s, wherever the servers are (%s, %s)',
  async (clock, month, next) => {
    await begin(clock, 98);
    expectRefused(await fire(4), 2);
    await quiet();
    expect(await counts()).toEqual([{ month, delivered: 100, failed: 0, reserved: 0 }]);
    // By the clock of the database: the real one is months away. It has run on for as long as the test took.
    const mostSeconds = (Date.parse(`${next}T00:00:00Z`) - Date.parse(clock)) / 1_000;
    for (const { body, headers } of await fire(2)) {
      expect(body.error.details.month_ends_at).toBe(`${next}T00:00:00.000Z`);
      expect(Number(headers['retry-after'])).toBeLessThanOrEqual(mostSeconds);
      expect(Number(headers['retry-after'])).toBeGreaterThan(mostSeconds - 300);
    }
  },
  120_000,
);

test('401, 409 and 429 in a loop move no count and store nothing', async () => {
  await begin(NOVEMBER, 100);
  for (const [status, keys] of [
    [401, ['sk_test_00000000000000000000000000000000']],
    [409, [liveKey]],
    [429, sandbox],
  ] as const)
    expect(new Set((await fire(100, keys)).map((one) => one.status))).toEqual(new Set([status]));
  expect(await counts()).toEqual(november(100));
  expect(await scene.rows()).toEqual([]);
});

test('accepted at 23:59:59.9 on the last day, delivered in the new month: neither has more than it may', async () => {
  await worker?.end('SIGTERM');
  await begin('2027-01-01T00:00:00Z');
  await setServiceClock(scene.database, '2027-01-31T23:59:59.9Z');
  let refused = 0;
  const january = fire(250, sandbox, ({ status }) => (refused += Number(status === 429)));
  const held = async (month: string) =>
    (await counts()).find((count) => count.month === month)?.reserved ?? 0;
  await until(async () => (await held('2027-01-01')) === 100, 'a hundred units of January');
  // A call of January that is still on its way when the month ends would rightly take a unit of February.
  await until(() => refused === 150, 'every other call of January is refused');
  await startServiceClock(scene.database, '2027-02-01T00:00:00.1Z');
  const february = fire(30);
  await until(async () => (await held('2027-02-01')) === 30, 'thirty units of February');
  await startWorker();

  expectRefused(await january, 150);
  expectRefused(await february, 0);
  await quiet();
  expect(await counts()).toEqual([{ month: '2027-02-01', delivered: 100, failed: 30, reserved: 0 }]);
  expect(taken.size).toBe(100);
  const ends = await scene.database.sql`
    select state, end_reason, attempts, count(*)::int from notifications_now group by 1, 2, 3 order by 1`;
  expect(ends).toEqual([
    { state: 'delivered', end_reason: null, attempts: 1, count: 100 },
    { state: 'failed', end_reason: 'monthly_limit', attempts: 0, count: 30 },
  ]);
  expectRefused(await fire(20), 20);
}, 180_000);
