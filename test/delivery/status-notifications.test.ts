import { defineSearchAttributeKey } from '@temporalio/common';
import { applicationEventSchema } from '../../contracts/webhook-event';
import { useService } from '../support/service';
import { until } from '../../testbed/until';
import { deliveryOf } from '../support/histories';
import { internalClient, type InternalClient } from '../support/internal-api';
import { SHOP } from '../support/merchants';
import { testTemporal } from '../support/temporal';
import { verifySignatures } from '../support/webhook-receiver';

const temporal = testTemporal();
const { api, receiver, register, worker } = useService(
  {
    api: { LENDER_EVENT_WAIT_SECONDS: '2' },
    worker: { DELIVERY_LADDER_SECONDS: '0,1,1,1', RECONCILE_AFTER_MS: '500' },
  },
  temporal,
);
let lender: Record<'test' | 'live', InternalClient>;
/** Whose key each application is under. */
const clients = new Map<string, InternalClient>();
const clientOf = (id: string) => clients.get(id) ?? lender.test;

beforeAll(async () => {
  lender = {
    test: await internalClient(api),
    live: await internalClient(api, { environment: 'live' }),
  };
});

/** Opens an application from the link of a new quote, as a lender's integration does. */
async function opened(environment: 'test' | 'live'): Promise<string> {
  const quote = await api.quote(
    { merchant_id: SHOP, merchant_reference: 'basket 2041' },
    { key: api.keys[environment] },
  );
  const answer = await lender[environment].openLink(quote.body.data.products[0].merchant_finance_url);
  const id: string = answer.body.data.credit_application_id;
  clients.set(id, lender[environment]);
  return id;
}

let minute = 0;
const tell = (id: string, status: string) =>
  clientOf(id).tell(id, {
    lender_event_id: `${id} ${status}`.replace(' ', '-'),
    status,
    occurred_at: new Date(Date.UTC(2026, 10, 21, 12, (minute += 1))).toISOString(),
  });
const notificationsOf = async (id: string) =>
  (await clientOf(id).read(id)).body.data.notifications as { notification_id: string; state: string }[];
const delivered = async (id: string) => {
  const states = (await notificationsOf(id)).map(({ state }) => state);
  return states.every((state) => state === 'delivered') && states.length;
};
const eventsOf = (id: string) =>
  receiver.received.flatMap(({ body }) => {
    const event = applicationEventSchema.strict().parse(JSON.parse(body));
    return event.data.credit_application_id === id ? [event] : [];
  });

const WAY = ['submitted', 'referred', 'accepted', 'deposit_paid', 'signed', 'ready', 'activated', 'paid_out'];

test('an application from its opening to its end: every event arrives in order, verified, and is counted once', async () => {
  const { secret } = await register();
  const id = await opened('test');
  // The partner is out of order now and then.
  receiver.behave((nth) => (nth % 4 === 1 ? 503 : 200));
  await until(async () => (await delivered(id)) === 1, 'the opening has arrived');
  for (const [at, status] of WAY.entries()) {
    expect((await tell(id, status)).body.data.outcome).toBe('applied');
    await until(async () => (await delivered(id)) === at + 2, `${status} has arrived`);
  }
  for (const request of receiver.received) verifySignatures(request, secret);
  const arrived = eventsOf(id);
  const once = arrived.filter(({ event_id: one }, at) => arrived.findIndex((x) => x.event_id === one) === at);
  expect(once.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(once.map(({ data }) => data.status)).toEqual(['created', ...WAY]);
  expect(arrived.length).toBeGreaterThan(once.length);
  expect(arrived.map(({ sequence }) => sequence)).toEqual(
    arrived.map(({ sequence }) => sequence).toSorted((a, b) => a - b),
  );
  const [first] = await notificationsOf(id);
  const described = await deliveryOf(temporal.client, first?.notification_id ?? '').describe();
  expect(described.typedSearchAttributes.get(defineSearchAttributeKey('ApplicationId', 'KEYWORD'))).toBe(id);
  const rows = await api.database.sql`
    select body from notifications_now where application_id = ${id} order by sequence`;
  expect(rows.map(({ body }) => JSON.parse(String(body)))).toEqual(once);
  const counts = await api.database.sql`
    select event_type, delivered, failed from monthly_counts order by event_type`;
  expect(counts).toEqual(
    ['created', ...WAY]
      .toSorted()
      .map((state) => ({ event_type: `credit_application.${state}`, delivered: 1, failed: 0 })),
  );
});

test('an application whose lender leaves out `activated` moves on after the wait, and the partner is sent each state', async () => {
  receiver.behave(() => 200);
  const id = await opened('test');
  const outcomes = [];
  for (const status of ['accepted', 'paid_out', 'completed'])
    outcomes.push((await tell(id, status)).body.data.outcome);
  expect(outcomes).toEqual(['applied', 'waiting', 'waiting']);
  const [waiting] = (await lender.test.read(id)).body.data.lender_events.slice(-1);
  expect(Date.parse(waiting.waits_until) - Date.parse(waiting.received_at)).toBeGreaterThanOrEqual(1_990);

  await until(() => eventsOf(id).length >= 4, 'all has arrived');
  expect(eventsOf(id).map(({ sequence, data }) => [sequence, data.status, data.previous_status])).toEqual([
    [1, 'created', null],
    [2, 'accepted', 'created'],
    [3, 'paid_out', 'accepted'],
    [4, 'completed', 'paid_out'],
  ]);
  const warnings = worker.logs
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ kind }) => kind === 'lender_steps_missing');
  expect(warnings).toEqual([expect.objectContaining({ application_id: id })]);
  const metrics = await worker.worker.registry.metrics();
  expect(metrics).toContain('pfqs_lender_steps_missing_total 1\n');
});

test('what is told last to first, all at once and before a webhook is registered arrives first to last once one is', async () => {
  receiver.behave(() => 200);
  // What is told before there is an endpoint is held, and arrives in order as well.
  const ids = await Promise.all(Array.from({ length: 5 }, () => opened('live')));
  await Promise.all(ids.flatMap((id) => WAY.toReversed().map((status) => tell(id, status))));
  const { secret } = await register(api.partnerId, 'live');
  for (const id of ids) {
    const stands = (await clientOf(id).read(id)).body.data;
    expect(stands.status).toBe('paid_out');
    const told = stands.notifications.map(({ sequence }: { sequence: number }) => sequence);
    await until(async () => (await delivered(id)) === told.length, 'all have arrived');
    expect(eventsOf(id).map(({ sequence }) => sequence)).toEqual(told);
    for (const request of receiver.received.filter(({ body }) => body.includes(id)))
      verifySignatures(request, secret);
  }
});
