import { applicationEventSchema } from '../../contracts/webhook-event';
import { newReference } from '../support/applications';
import { startTestWorker, until, type TestWorker } from '../support/delivery';
import { internalClient, type InternalClient } from '../support/internal-api';
import { SHOP } from '../support/merchants';
import { addEndpoint } from '../support/notifications';
import { startTestService, type TestService } from '../support/service';
import { randomTaskQueue, testTemporal } from '../support/temporal';

const temporal = testTemporal();
/** The second one looks as often as the first. */
const OFTEN = { RECONCILE_AFTER_MS: '500' };
let service: TestService;
let second: TestWorker;
let lender: InternalClient;

beforeAll(async () => {
  service = await startTestService(temporal, { api: { LENDER_EVENT_WAIT_SECONDS: '2' }, worker: OFTEN });
  const { api, receiver, keys } = service;
  second = await startTestWorker({
    databaseUrl: api.databaseUrl,
    temporal,
    taskQueue: randomTaskQueue(),
    receiver,
    keys,
    environment: OFTEN,
  });
  lender = await internalClient(api);
  await addEndpoint(api.database, { partnerId: api.partnerId, url: receiver.url, keyRing: keys });
}, 300_000);

afterAll(async () => {
  await second?.close();
  await service?.close();
});

async function opened(): Promise<string> {
  const quote = await service.api.quote({ merchant_id: SHOP });
  const link: string = quote.body.data.products[0].merchant_finance_url;
  const answer = await lender.open({
    lender: 'lender_a',
    lender_reference: newReference(),
    finance_link: link,
  });
  return answer.body.data.credit_application_id;
}

const tell = async (id: string, status: string) => {
  const event = { lender_event_id: `${id}-${status}`, status, occurred_at: new Date().toISOString() };
  return (await lender.tell(id, event)).body.data.outcome;
};
const receivedOf = (id: string) =>
  service.receiver.received
    .map(({ body }) => applicationEventSchema.parse(JSON.parse(body)))
    .filter(({ data }) => data.credit_application_id === id);

test('with two workers, applications of a lender that leaves out `activated` move on once, and the partner is sent each state', async () => {
  const ids = await Promise.all(Array.from({ length: 5 }, opened));
  for (const id of ids) {
    expect(await tell(id, 'accepted')).toBe('applied');
    expect(await tell(id, 'paid_out')).toBe('waiting');
    expect(await tell(id, 'completed')).toBe('waiting');
  }
  const [waiting] = (await lender.read(ids[4] ?? '')).body.data.lender_events.slice(-1);
  expect(Date.parse(waiting.waits_until) - Date.parse(waiting.received_at)).toBeGreaterThanOrEqual(1_990);
  await until(() => ids.every((id) => receivedOf(id).length >= 4), 'all has arrived', 60_000);
  for (const id of ids) {
    expect(receivedOf(id).map(({ sequence, data }) => [sequence, data.status, data.previous_status])).toEqual(
      [
        [1, 'created', null],
        [2, 'accepted', 'created'],
        [3, 'paid_out', 'accepted'],
        [4, 'completed', 'paid_out'],
      ],
    );
  }

  const warnings = [...service.worker.logs, ...second.logs]
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ kind }) => kind === 'lender_steps_missing');
  expect(warnings).toHaveLength(ids.length);
  expect(new Set(warnings.map((line) => line['application_id']))).toEqual(new Set(ids));
  const pages = await Promise.all([service.worker, second].map(({ worker }) => worker.registry.metrics()));
  const counts = pages.map((page) => Number(/^pfqs_lender_steps_missing_total (\d+)$/m.exec(page)?.[1]));
  expect((counts[0] ?? 0) + (counts[1] ?? 0)).toBe(ids.length);
  for (const page of pages) expect(page).toContain('pfqs_lender_events_waiting 0\n');
});
