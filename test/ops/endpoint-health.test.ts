import { holdQueued } from '../../db/notifications/hold';
import type { DeliveryOutcome } from '../../domain/delivery-outcome';
import { storeStatus } from '../support/notifications';
import { attempt } from '../support/partner-events';
import { DELIVERED, FAILED } from '../support/values';
import { useOps } from './run';

const LANE = { partnerId: 'P100001', environment: 'live' } as const;
const NAMED = ['--partner', LANE.partnerId, '--environment', LANE.environment];
const ops = useOps();
let endpointId: string;

beforeAll(async () => {
  await ops.json('partners create --name Example --id', LANE.partnerId);
  const registered = ['webhooks', 'register', ...NAMED, '--url', 'https://partner.example/hooks'];
  ({ endpoint_id: endpointId } = await ops.json(...registered));
});
const attemptNow = async (outcome: DeliveryOutcome) =>
  attempt(ops.database, (await storeStatus(ops.database, LANE)).notificationId, outcome);

test('shows how an endpoint is, what is held for it, and what operators should know', async () => {
  await attemptNow(DELIVERED);
  expect(await ops.json('webhooks show', ...NAMED)).toMatchObject({
    // It is written once a minute.
    last_success_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\dZ$/),
    failing_since: null,
    failures_since_success: 0,
    held: 0,
  });
  await attemptNow({ ...FAILED, failure: 'gone', httpStatus: 410 });
  for (let nth = 0; nth < 3; nth += 1) await storeStatus(ops.database, LANE);
  await holdQueued(ops.database.db, LANE, { limit: 10 });

  const [listed] = await ops.json('webhooks list --partner', LANE.partnerId);
  const health = { state: 'disabled', disabled_reason: 'gone', failures_since_success: 1, held: 3 };
  expect(listed).toMatchObject({ ...health, failing_since: expect.stringMatching(/^\d{4}-/) });
  expect(await ops.json('webhooks show', endpointId)).toMatchObject(health);
  expect(await ops.text('webhooks list')).toMatch(/failing.*pending.*retrying.*paused.*held/);

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
  expect(await ops.text('events list --wide')).toContain('it answered 410: ask the partner');
  await ops.refuses(2, '', 'events list --kind weather');
});

test('enabling, and registering in its place, say what is released by it', async () => {
  // The service has disabled it: now the operator has, and the alert for it ends.
  expect(await ops.text('webhooks disable', ...NAMED)).toContain(
    `Endpoint ${endpointId} is now disabled (operator).`,
  );
  expect(await ops.text('webhooks disable', ...NAMED)).toContain('was already disabled (operator)');
  const enabled = await ops.text('webhooks enable', ...NAMED);
  expect(enabled).toContain('is now active.\n3 held notifications are released now');
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
