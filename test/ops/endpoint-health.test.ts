import { holdQueued } from '../../db/notifications/hold';
import { openAttempt, recordAttempt } from '../../db/notifications/attempt';
import { storeStatus } from '../support/notifications';
import { createOpsUnderTest, type OpsUnderTest } from './run';

const LANE = { partnerId: 'P100001', environment: 'live' } as const;
const NAMED = ['--partner', LANE.partnerId, '--environment', LANE.environment];
let ops: OpsUnderTest;
let endpointId: string;

beforeAll(async () => {
  ops = await createOpsUnderTest();
  await ops.json('partners create --name Example --id', LANE.partnerId);
  const registered = ['webhooks', 'register', ...NAMED, '--url', 'https://partner.example/hooks'];
  ({ endpoint_id: endpointId } = await ops.json(...registered));
});
afterAll(() => ops.close());

async function attempt(httpStatus: number): Promise<void> {
  const { notificationId } = await storeStatus(ops.database, LANE);
  const opened = await openAttempt(ops.database.db, { notificationId, generation: 1 });
  if (opened.kind !== 'open') throw new Error(opened.kind);
  const took = { httpStatus, durationMs: 35 };
  const outcome =
    httpStatus === 200
      ? ({ kind: 'delivered', ...took } as const)
      : ({ kind: 'failed', failure: 'gone', retryAfterMs: null, ...took } as const);
  const ref = { notificationId, attemptNumber: opened.attemptNumber };
  const end = httpStatus === 200 ? null : ({ state: 'failed', reason: 'gone' } as const);
  await recordAttempt(ops.database.db, ref, { outcome, address: null }, end);
}

test('shows how an endpoint is, what is held for it, and what operators should know', async () => {
  await attempt(200);
  expect(await ops.json('webhooks show', ...NAMED)).toMatchObject({
    // It is written once a minute.
    last_success_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\dZ$/),
    failing_since: null,
    failures_since_success: 0,
    held: 0,
  });
  await attempt(410);
  for (let nth = 0; nth < 3; nth += 1) await storeStatus(ops.database, LANE);
  await holdQueued(ops.database.db, LANE, { limit: 10 });

  const [listed] = await ops.json('webhooks list --partner', LANE.partnerId);
  const health = { state: 'disabled', disabled_reason: 'gone', failures_since_success: 1, held: 3 };
  expect(listed).toMatchObject({ ...health, failing_since: expect.stringMatching(/^\d{4}-/) });
  expect(await ops.json('webhooks show', endpointId)).toMatchObject(health);
  expect((await ops.run(['webhooks list'])).out).toMatch(/failing.*pending.*retrying.*paused.*held/);

  expect(await ops.json('events list --kind endpoint_disabled')).toEqual([
    expect.objectContaining({
      kind: 'endpoint_disabled',
      partner_id: LANE.partnerId,
      environment: 'live',
      endpoint_id: endpointId,
      details: expect.objectContaining({
        reason: 'gone',
        failures: 1,
        last_success_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\dZ$/),
      }),
    }),
  ]);
  expect(await ops.json('events list', ...NAMED, '--kind', 'notifications_expired')).toEqual([]);
  expect((await ops.run(['events list --wide'])).out).toContain('it answered 410: ask the partner');
  await ops.refuses(2, '', 'events list --kind weather');
});

test('enabling, and registering in its place, say what is released by it', async () => {
  // The service has disabled it: now the operator has, and the alert for it ends.
  const disabled = await ops.run(['webhooks disable', ...NAMED]);
  expect(disabled.out).toContain(`Endpoint ${endpointId} is now disabled (operator).`);
  expect((await ops.run(['webhooks disable', ...NAMED])).out).toContain('was already disabled (operator)');
  const enabled = await ops.run(['webhooks enable', ...NAMED]);
  expect(enabled.out).toContain('is now active.\n3 held notifications are released now');
  expect(await ops.json('webhooks show', ...NAMED)).toMatchObject({
    state: 'active',
    failing_since: null,
    failures_since_success: 0,
    last_success_at: expect.stringMatching(/^\d{4}-/),
  });
  const replace = ['webhooks', 'register', ...NAMED, '--url', 'https://other.example/', '--replace'];
  expect(await ops.json(...replace)).toMatchObject({ held: 3 });
  expect(new Set(await ops.column('held', 'webhooks list --removed'))).toEqual(new Set([0, 3]));
});
