import { applicationEventSchema } from '../../contracts/webhook-event';
import { newReference } from '../support/applications';
import { until } from '../support/delivery';
import { internalClient } from '../support/internal-api';
import { SHOP } from '../support/merchants';
import { addEndpoint } from '../support/notifications';
import { startTestService, type TestService } from '../support/service';
import { testTemporal } from '../support/temporal';

const temporal = testTemporal();
let service: TestService;

beforeAll(async () => {
  service = await startTestService(temporal, {
    api: { LENDER_EVENT_WAIT_SECONDS: '2' },
    worker: { RECONCILE_AFTER_MS: '500' },
  });
  const { api, receiver, keys } = service;
  await addEndpoint(api.database, { partnerId: api.partnerId, url: receiver.url, keyRing: keys });
}, 300_000);
afterAll(() => service?.close());

test('an application whose lender leaves out `activated` moves on after the wait, and the partner is sent each state', async () => {
  const { api, receiver, worker } = service;
  const lender = await internalClient(api);
  const quote = await api.quote({ merchant_id: SHOP });
  const finance_link: string = quote.body.data.products[0].merchant_finance_url;
  const opened = await lender.open({ lender: 'lender_a', lender_reference: newReference(), finance_link });
  const id: string = opened.body.data.credit_application_id;
  const tell = async (status: string) => {
    const event = { lender_event_id: `${id}-${status}`, status, occurred_at: new Date().toISOString() };
    return (await lender.tell(id, event)).body.data.outcome;
  };
  expect(await tell('accepted')).toBe('applied');
  expect(await tell('paid_out')).toBe('waiting');
  expect(await tell('completed')).toBe('waiting');
  const [waiting] = (await lender.read(id)).body.data.lender_events.slice(-1);
  expect(Date.parse(waiting.waits_until) - Date.parse(waiting.received_at)).toBeGreaterThanOrEqual(1_990);

  await until(() => receiver.received.length >= 4, 'all has arrived', 60_000);
  const events = receiver.received.map(({ body }) => applicationEventSchema.parse(JSON.parse(body)));
  expect(events.map(({ sequence, data }) => [sequence, data.status, data.previous_status])).toEqual([
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
  expect(metrics).toContain('pfqs_lender_events_waiting 0\n');
});
