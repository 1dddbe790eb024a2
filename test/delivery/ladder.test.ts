import { parseKeyRing } from '../../db/endpoints/key-ring';
import { rotateSecret, generateWebhookSecret } from '../../db/endpoints/secrets';
import { restartNotification } from '../../db/notifications/claim';
import { setEndpointState } from '../../db/endpoints/endpoints';
import { DELIVERY_LADDER_MS, TEST_LADDER_MS } from '../../domain/delivery-outcome';
import {
  pauseSignal,
  progressQuery,
  resumeSignal,
  retryNowSignal,
} from '../../workflows/deliver-notification';
import { until } from '../support/delivery';
import { keepHistory } from '../support/histories';
import { addEndpoint, storeStatus, storeTest } from '../support/notifications';
import { timeSkippingServer } from '../support/temporal';
import { verifySignatures } from '../support/webhook-receiver';
import { endOf, openStage, PARTNER_ID, timersOf, type Stage } from './time';

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

const HOUR_MS = 3_600_000;
const received = () => stage.receiver.received;
const rowOf = async (notificationId: string) =>
  (
    await stage.database.sql`select state, end_reason, attempts, reserved_month from notifications_now
      where notification_id = ${notificationId}`
  )[0];

test('a first 2xx ends it, without a timer', async () => {
  const { handle, notificationId } = await stage.start(DELIVERY_LADDER_MS);
  expect(await handle.result()).toEqual({ status: 'delivered', attempts: 1 });
  expect(await timersOf(handle)).toEqual([]);
  expect(await rowOf(notificationId)).toMatchObject({ state: 'delivered', attempts: 1 });
  await keepHistory('delivered-at-once', handle);
});

test.each([
  ['status notifications', DELIVERY_LADDER_MS, 75.6],
  ['tests', TEST_LADDER_MS, 35 / 3_600],
])(
  'the whole ladder of %s: every step with a jitter that only adds',
  async (kind, ladderMs, hours) => {
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
    expect(await rowOf(notificationId)).toEqual({
      state: 'failed',
      end_reason: 'exhausted',
      attempts: ladderMs.length,
      reserved_month: null,
    });
    await keepHistory(kind === 'tests' ? 'test-ladder-exhausted' : 'ladder-exhausted', handle);
  },
  60_000,
);

test.each([
  ['7200', 7_200_000, 7_200_000],
  ['1', 5_000, 6_000],
  ['999999', 10 * HOUR_MS, 10 * HOUR_MS],
  ['-5', 5_000, 6_000],
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
  expect(await restartNotification(sql, { notificationId, generation: 1 })).toBe(true);

  const next = await stage.deliver(notificationId, ladderMs, 'regular', 2);
  if (paused) {
    await until(async () => (await next.query(progressQuery)).paused, 'it is paused');
    await next.signal(resumeSignal);
  }
  expect(await next.result()).toEqual({ status: 'delivered', attempts: 3 });
  const [first = 0, second = 0] = await timersOf(next);
  expect(first).toBeGreaterThan(leftMs - 10_000);
  expect(first).toBeLessThanOrEqual(leftMs + 1);
  expect(second).toBeGreaterThanOrEqual(3 * HOUR_MS);
  expect(second).toBeLessThanOrEqual(3.3 * HOUR_MS);
  expect(await rowOf(notificationId)).toMatchObject({ state: 'delivered', attempts: 3 });
  await keepHistory(paused ? 'restarted-paused' : 'restarted', next);
});

test('410 ends it at once and disables the endpoint', async () => {
  stage.receiver.behave(() => 410);
  const { handle, notificationId } = await stage.start(DELIVERY_LADDER_MS);
  expect(await endOf(handle)).toMatchObject({
    workflow: 'FAILED',
    reason: 'gone',
    message: expect.stringMatching(/^attempt 1 answered 410/),
  });
  expect(await rowOf(notificationId)).toMatchObject({ state: 'failed', end_reason: 'gone' });
  await keepHistory('gone', handle);
  const enabled = await stage.database.db.transaction((tx) =>
    setEndpointState(tx, stage.endpointId, { state: 'active' }),
  );
  expect(enabled.changed).toBe(true);
});

test('a secret rotated in mid-ladder signs the next attempt along with the old one', async () => {
  const next = generateWebhookSecret();
  const keyRing = parseKeyRing(stage.keys);
  stage.receiver.behave((nth) =>
    nth > 0
      ? 200
      : (response) =>
          void stage.database.db
            .transaction((tx) =>
              rotateSecret(tx, stage.endpointId, {
                overlapSeconds: 3_600,
                seal: (place) => keyRing.seal(next, place),
              }),
            )
            .then(() => response.writeHead(500).end()),
  );
  const { handle } = await stage.start(DELIVERY_LADDER_MS);
  expect(await handle.result()).toMatchObject({ status: 'delivered', attempts: 2 });
  const [first, second] = received();
  if (!first || !second) throw new Error('two attempts were expected');
  verifySignatures(first, stage.secret);
  expect(() => verifySignatures(first, next)).toThrow('No matching signature');
  verifySignatures(second, stage.secret);
  verifySignatures(second, next);
});

test('an endpoint registered anew in mid-ladder gets the next attempt, under its own secret', async () => {
  const url = stage.receiver.url.replace('/webhooks', '/elsewhere');
  let secret = '';
  stage.receiver.behave((nth) =>
    nth > 0
      ? 200
      : (response) =>
          void addEndpoint(stage.database, { partnerId: PARTNER_ID, url, keyRing: stage.keys }).then(
            (added) => {
              ({ secret } = added);
              response.writeHead(500).end();
            },
          ),
  );
  const { handle } = await stage.start(DELIVERY_LADDER_MS);
  expect(await handle.result()).toMatchObject({ status: 'delivered', attempts: 2 });
  const [, second] = received();
  if (!second) throw new Error('two attempts were expected');
  verifySignatures(second, secret);
  expect(() => verifySignatures(second, stage.secret)).toThrow('No matching signature');
});

test('a test whose endpoint is gone fails, unsent', async () => {
  stage.receiver.behave((nth) => (nth === 0 ? 500 : 200));
  const { handle, notificationId } = await stage.start([0, HOUR_MS]);
  await until(async () => (await rowOf(notificationId))?.['attempts'] === 1, 'the first attempt');
  await stage.database.sql`update webhook_endpoints set state = 'disabled' where state = 'active'`;
  expect(await endOf(handle)).toMatchObject({ workflow: 'FAILED', reason: 'endpoint_disabled' });
  expect(received()).toHaveLength(1);
  await keepHistory('no-endpoint', handle);
  await stage.database.sql`update webhook_endpoints set state = 'active' where state = 'disabled'`;
});

describe.each(['regular', 'fast'] as const)('on the %s path', (path) => {
  test('a pause of a week loses no step of the ladder', async () => {
    stage.receiver.behave((nth) => (nth < 3 ? 500 : 200));
    const { handle, notificationId } = await stage.start([0, 60_000, 120_000, 180_000], path);
    await until(async () => (await rowOf(notificationId))?.['attempts'] === 1, 'the first attempt');
    await handle.signal(pauseSignal);
    await temporal.env.sleep('7 days');
    expect(received()).toHaveLength(1);
    expect(await handle.query(progressQuery)).toMatchObject({ phase: 'paused', paused: true, attempts: 1 });
    await handle.signal(resumeSignal);
    expect(await handle.result()).toMatchObject({ status: 'delivered', attempts: 4 });
    expect(await timersOf(handle)).toHaveLength(3);
    await keepHistory(path === 'fast' ? 'fast-then-paused' : 'paused-and-resumed', handle);
  });

  test('retry now ends a wait, and one given during an attempt is for the next, never beside it', async () => {
    let open = 0;
    let most = 0;
    stage.receiver.behave((nth) => (response) => {
      open += 1;
      most = Math.max(most, open);
      void (async () => {
        if (nth === 0) await handle.signal(retryNowSignal);
        await new Promise((resolve) => setTimeout(resolve, 300));
        open -= 1;
        response.writeHead(nth < 2 ? 500 : 200).end();
      })();
    });
    const { handle, notificationId } = await stage.start([0, 10 * HOUR_MS, 20 * HOUR_MS], path);
    await until(async () => (await rowOf(notificationId))?.['attempts'] === 2, 'the second attempt, at once');
    await until(() => received().length === 2 && open === 0, 'its end');
    await handle.signal(retryNowSignal);
    expect(await handle.result()).toMatchObject({ status: 'delivered', attempts: 3 });
    const { startTime, closeTime } = await handle.describe();
    expect((closeTime?.getTime() ?? Infinity) - startTime.getTime()).toBeLessThan(HOUR_MS);
    expect(most).toBe(1);
    await keepHistory(path === 'fast' ? 'fast-retry-now' : 'retry-now', handle);
  });
});

test('cancelled by an operator, it ends without a further attempt and gives its place back', async () => {
  stage.receiver.behave(() => 500);
  const { handle, notificationId } = await stage.start([0, HOUR_MS]);
  await until(async () => (await rowOf(notificationId))?.['attempts'] === 1, 'the first attempt');
  await handle.cancel();
  expect(await endOf(handle)).toEqual({ workflow: 'CANCELLED' });
  expect(received()).toHaveLength(1);
  expect(await rowOf(notificationId)).toMatchObject({ state: 'cancelled', reserved_month: null });
  await keepHistory('cancelled', handle);
});

test('cancelled during an attempt, it ends as soon as that has been recorded', async () => {
  stage.receiver.behave(() => (response) => void handle.cancel().then(() => response.writeHead(503).end()));
  const { handle, notificationId } = await stage.start([0, HOUR_MS]);
  expect(await endOf(handle)).toEqual({ workflow: 'CANCELLED' });
  expect(await rowOf(notificationId)).toMatchObject({ state: 'cancelled', attempts: 1 });
  const attempts = await stage.database
    .sql`select outcome, http_status from delivery_attempts where notification_id = ${notificationId}`;
  expect([...attempts]).toEqual([{ outcome: 'failed', http_status: 503 }]);
  await keepHistory('cancelled-during-an-attempt', handle);
});

test('cancelled during the attempt that is delivered, it is delivered', async () => {
  stage.receiver.behave(() => (response) => void handle.cancel().then(() => response.writeHead(200).end()));
  const { handle, notificationId } = await stage.start([0, HOUR_MS]);
  expect(await endOf(handle)).toMatchObject({ workflow: 'COMPLETED', status: 'delivered' });
  expect(await rowOf(notificationId)).toMatchObject({ state: 'delivered' });
});

test('cancelled while it is paused, it ends', async () => {
  stage.receiver.behave(() => 500);
  const { handle, notificationId } = await stage.start([0, HOUR_MS]);
  await until(async () => (await rowOf(notificationId))?.['attempts'] === 1, 'the first attempt');
  await handle.signal(pauseSignal);
  await temporal.env.sleep('2 hours');
  await handle.cancel();
  expect(await endOf(handle)).toEqual({ workflow: 'CANCELLED' });
  expect(await rowOf(notificationId)).toMatchObject({ state: 'cancelled' });
});

/** A row as it gets past the checks of an insert: `event_id` in it is what its body has, too. */
const POISON: readonly (readonly [string, string])[] = [
  ['a body that is no event', `set body = '{"event_id":'`],
  ['a body that is null', `set body = 'null'`],
  [
    'an id with a line break',
    `set event_id = event_id || E'\\nx', body = replace(body, event_id, event_id || '\\nx')`,
  ],
  ['the id of another event', `set event_id = 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'`],
  ['another type', `set event_type = 'credit_application.paid_out'`],
  ['the other environment in its body', `set body = replace(body, 'sandbox', 'live')`],
  [
    'a test that speaks of an application',
    `set body = replace(body, repeat('0', 26), '01KAF1Z4Q0T6M5S7Y2W3X4V5B6')`,
  ],
  ['a test with a state', `set body = replace(body, '"status":"test"', '"status":"paid_out"')`],
  ['another sequence', `set body = replace(body, '"sequence":1', '"sequence":2')`],
  ["another's reference", `set body = replace(body, '"TEST"', '"basket 2041"')`],
];
describe.each(['regular', 'fast'] as const)('on the %s path', (path) => {
  test.each(POISON)(
    '%s ends at once as poison, unsent, and gives its slot and its place back',
    async (_, change) => {
      const { notificationId } = await storeTest(stage.database, { partnerId: PARTNER_ID });
      await stage.database.sql.unsafe(
        `update notifications ${change} where notification_id = '${notificationId}'`,
      );
      const handle = await stage.deliver(notificationId, [0, HOUR_MS], path);
      expect(await endOf(handle)).toEqual({ workflow: 'FAILED', reason: 'poison', message: 'not sent' });
      expect(received()).toHaveLength(0);
      expect(await rowOf(notificationId)).toMatchObject({
        state: 'failed',
        end_reason: 'poison',
        reserved_month: null,
      });
    },
  );
});

test('an event whose row names another application, or whose body does, ends as poison; as stored it is sent', async () => {
  const sent = await storeStatus(stage.database, { partnerId: PARTNER_ID });
  expect(await endOf(await stage.deliver(sent.notificationId, [0]))).toMatchObject({ status: 'delivered' });
  for (const change of [
    `application_id = 'app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'`,
    'sequence = 2',
    `merchant_reference = 'basket 2041'`,
    `body = replace(body, '"status":"accepted"', '"status":"paid_out"')`,
  ]) {
    const { notificationId } = await storeStatus(stage.database, { partnerId: PARTNER_ID });
    await stage.database.sql.unsafe(
      `update notifications set ${change} where notification_id = '${notificationId}'`,
    );
    const handle = await stage.deliver(notificationId, [0, HOUR_MS]);
    expect([change, await endOf(handle)]).toEqual([
      change,
      { workflow: 'FAILED', reason: 'poison', message: 'not sent' },
    ]);
  }
  expect(received()).toHaveLength(1);
});
