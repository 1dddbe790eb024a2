import { defineSearchAttributeKey } from '@temporalio/common';
import { SEARCH_ATTRIBUTES } from '../../domain/notification-states';
import { useService } from '../support/service';
import { comesTo, storeTest } from '../../testbed/notifications';
import { until } from '../../testbed/until';
import { deliveryOf } from '../support/histories';
import { testTemporal } from '../support/temporal';
import { verifySignatures } from '../support/webhook-receiver';

const temporal = testTemporal();
const { api, receiver, register } = useService({ worker: { TEST_LADDER_SECONDS: '0,1,1' } }, temporal);
let secret: string;

beforeAll(async () => {
  ({ secret } = await register());
});
beforeEach(() => receiver.reset());

const send = (query = '') => api.call({ path: `/v1/notifications/test${query}` });
const historyOf = async (notificationId: string) => {
  const handle = deliveryOf(temporal.client, notificationId);
  return { handle, described: await handle.describe() };
};

test('is signed, delivered and answered with what the endpoint said', async () => {
  const answer = await send();
  expect(answer.status).toBe(200);
  const { data } = answer.body;
  expect(data).toMatchObject({
    status: 'delivered',
    environment: 'sandbox',
    event_type: 'credit_application.test',
    reason: null,
    attempt: { http_status: 200 },
  });
  const [received] = receiver.received;
  if (received === undefined) throw new Error('nothing was received');
  verifySignatures(received, secret);
  expect(received.headers).toMatchObject({
    'service-test': 'true',
    'content-type': 'application/json; charset=utf-8',
    'accept-encoding': 'identity',
    'webhook-id': data.event_id,
  });
  const event = JSON.parse(received.body);
  expect(event).toMatchObject({ event_id: data.event_id, event_type: 'credit_application.test' });
  const [row] = await api.database.sql<{ body: string }[]>`
    select body from notifications_now where notification_id = ${data.notification_id}`;
  expect(row?.body).toBe(received.body);
});

test('goes on retrying after 202, and the receiver sees the same bytes under a new timestamp', async () => {
  receiver.behave((nth) => (nth < 2 ? { status: 503, body: 'not now' } : 200));
  const answer = await send();
  expect(answer).toMatchObject({
    status: 202,
    body: { data: { status: 'retrying', reason: null, attempt: { http_status: 503 } } },
  });
  await until(() => receiver.received.length === 3, 'three attempts');
  for (const received of receiver.received) verifySignatures(received, secret);
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-timestamp'])).size).toBeGreaterThan(
    1,
  );
  const { notification_id: id } = answer.body.data;
  await until(async () => (await historyOf(id)).described.status.name === 'COMPLETED', 'the end');
  const attempts = await api.database.sql`
    select attempt_number, outcome, http_status, answer, address from delivery_attempts
    where notification_id = ${id} order by 1`;
  expect(attempts).toEqual([
    { attempt_number: 1, outcome: 'failed', http_status: 503, answer: 'not now', address: '127.0.0.1' },
    { attempt_number: 2, outcome: 'failed', http_status: 503, answer: 'not now', address: '127.0.0.1' },
    { attempt_number: 3, outcome: 'delivered', http_status: 200, answer: null, address: '127.0.0.1' },
  ]);
});

test('reads as a story in Temporal, can be found by what it is, and tells no secret', async () => {
  receiver.behave((nth) => (nth === 0 ? 500 : 200));
  const { notification_id: id, event_id: eventId } = (await send()).body.data;
  await until(async () => (await historyOf(id)).described.status.name === 'COMPLETED', 'the end');
  const { handle, described } = await historyOf(id);
  expect(await described.staticSummary()).toBe('credit_application.test to P100001, sandbox');
  const { typedSearchAttributes: typed } = described;
  const attribute = (name: string) => [name, typed.get(defineSearchAttributeKey(name, 'KEYWORD'))] as const;
  expect(Object.fromEntries(SEARCH_ATTRIBUTES.map(attribute))).toEqual({
    PartnerId: 'P100001',
    Environment: 'sandbox',
    EventType: 'credit_application.test',
    ApplicationId: undefined,
    // While it was under way; how it ended is the status of the workflow.
    NotificationStatus: 'retrying',
  });
  const history = await handle.fetchHistory();
  const text = JSON.stringify(history);
  const summaries = (history.events ?? []).flatMap((event) => {
    const data = event.userMetadata?.summary?.data;
    return data ? [JSON.parse(Buffer.from(data).toString()) as string] : [];
  });
  expect(summaries).toEqual([
    'credit_application.test to P100001, sandbox',
    'attempt 1: at once, if its endpoint is fast',
    expect.stringMatching(
      /^attempt 1 answered 500 \(\d+ ms\)\. Waits until \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ for attempt 2: retry ladder$/,
    ),
    'attempt 2: sign and POST',
  ]);
  for (const hidden of [secret, secret.slice(6), eventId, 'lender_reference', receiver.url]) {
    expect(text).not.toContain(hidden);
    expect(text).not.toContain(Buffer.from(hidden).toString('base64').replace(/=+$/, ''));
  }
});

test('a body of almost 20 KB is sent whole, and Temporal keeps none of it', async () => {
  const filling = 'x'.repeat(19_000);
  const { notificationId, eventId } = await api.database.db.transaction(async (tx) => {
    const stored = await storeTest({ db: tx }, { partnerId: api.partnerId });
    await tx.execute(`
      update notifications set body = regexp_replace(body, '"credit_product":("[^"]*"|null)', '"credit_product":"${filling}"')
      where notification_id = '${stored.notificationId}'`);
    return stored;
  });
  await comesTo(api.database, notificationId, 'delivered');
  const [{ body } = { body: '' }] = receiver.received;
  expect(JSON.parse(body)).toMatchObject({ event_id: eventId, data: { credit_product: filling } });

  const { handle } = await historyOf(notificationId);
  await handle.result();
  const sizes = ((await handle.fetchHistory()).events ?? []).map((event) => JSON.stringify(event).length);
  expect(sizes.length).toBeGreaterThan(3);
  expect(Math.max(...sizes)).toBeLessThan(4_000);
});
