import { startTestApi, type TestApi } from '../support/api';
import { until } from '../support/delivery';
import { issueKey } from '../../db/keys';
import { setEndpointState } from '../../db/endpoints/endpoints';
import { verifySignatures, type Received } from '../support/webhook-receiver';
import { hostileRows, receiver, type HostilePartner } from './scene';

const { scene } = hostileRows();
let api: TestApi;

beforeAll(async () => {
  api = await startTestApi({ databaseUrl: scene().databaseUrl, keys: { test: 'none', live: 'none' } });
}, 60_000);
afterAll(() => api?.close());

async function keyOf({ partnerId }: HostilePartner, environment: 'sandbox' | 'live' = 'sandbox') {
  const { key } = await scene().database.db.transaction((tx) =>
    issueKey(tx, { partnerId, environment, expiresInSeconds: null }),
  );
  // The API hears of it within a moment; on a busy machine its first call may come sooner.
  await until(async () => (await api.quote({}, { key })).status !== 401, 'the key is known');
  return key;
}

/** An endpoint that keeps what it gets and answers with these statuses, the last one for ever. */
async function endpointOf(host: string, statuses: readonly number[], onRequest = async () => {}) {
  const received: Received[] = [];
  const { port } = await receiver((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const nth = received.push({ headers: request.headers, body, atMs: performance.now() }) - 1;
      void onRequest().then(() => response.writeHead(statuses[nth] ?? statuses.at(-1) ?? 200).end());
    });
  });
  return { url: `https://${host}:${port}/hook`, received };
}

const testCall = (key: string) => api.call({ path: '/v1/notifications/test', key });

test('410 ends it at once, disables the endpoint with an alert, holds the others; the next test is 409', async () => {
  const partner = await scene().partner();
  const { url, received } = await endpointOf(partner.host, [410]);
  await partner.register(url);
  const key = await keyOf(partner);

  const answer = await testCall(key);
  expect(answer).toMatchObject({
    status: 200,
    body: { data: { status: 'failed', reason: 'gone', attempt: { http_status: 410 } } },
  });
  const seen = await scene().ended(answer.body.data.notification_id);
  expect(seen).toMatchObject({
    state: 'failed',
    reason: 'gone',
    words: ['gone'],
    endpoint: 'disabled: gone',
  });
  expect(seen.reservedMonth).toBeNull();
  const alerts = async () => (await scene().look(answer.body.data.notification_id)).warnings.join();
  await until(async () => (await alerts()).includes('"kind":"endpoint_disabled"'), 'the alert');
  expect(await alerts()).toContain('"reason":"gone"');

  const { notificationId } = await partner.send('status');
  await until(async () => (await scene().look(notificationId)).state === 'held', 'it is held');
  expect((await scene().look(notificationId)).attempts).toHaveLength(0);
  const next = await testCall(key);
  expect(next).toMatchObject({ status: 409, body: { error: { code: 'WEBHOOK_NOT_REGISTERED' } } });
  expect(received).toHaveLength(1);
});

test('an endpoint changed in mid-ladder gets the next attempt, under its own secret', async () => {
  const partner = await scene().partner();
  const next = await endpointOf(partner.host, [200]);
  let secret = '';
  const first = await endpointOf(partner.host, [500], async () => {
    secret = await partner.register(next.url);
  });
  const old = await partner.register(first.url);
  const seen = await scene().ended((await partner.send('status')).notificationId);
  expect(seen).toMatchObject({ state: 'delivered', words: ['http_status', 'delivered'] });
  expect([first.received.length, next.received.length]).toEqual([1, 1]);
  const [got] = next.received;
  if (got === undefined) throw new Error('nothing was received');
  verifySignatures(got, secret);
  expect(() => verifySignatures(got, old)).toThrow('No matching signature');
  expect(got.body).toBe(first.received[0]?.body);
});

test.each([
  ['removed', 'status', 'held'],
  ['removed', 'test', 'failed'],
  ['disabled', 'status', 'held'],
  ['disabled', 'test', 'failed'],
] as const)('with the endpoint %s in mid-ladder a %s event is %s', async (state, kind, end) => {
  const partner = await scene().partner();
  const { sql, db } = scene().database;
  const { url, received } = await endpointOf(partner.host, [500], async () => {
    const [{ id } = { id: '' }] = await sql<{ id: string }[]>`
      select endpoint_id as id from webhook_endpoints where partner_id = ${partner.partnerId}`;
    if (state === 'removed')
      await sql`update webhook_endpoints set state = 'removed' where endpoint_id = ${id}`;
    else await db.transaction((tx) => setEndpointState(tx, id, { state, reason: 'operator' }));
  });
  await partner.register(url);
  const seen = await scene().ended((await partner.send(kind)).notificationId);
  const reason = state === 'removed' ? 'webhook_not_registered' : 'endpoint_disabled';
  expect(seen).toMatchObject({ state: end, reason, words: ['http_status'] });
  expect(received).toHaveLength(1);
});

test('a sandbox key with only a live endpoint is 409, and nothing is sent', async () => {
  const partner = await scene().partner();
  const { url, received } = await endpointOf(partner.host, [200]);
  await partner.register(url, 'live');
  const { sql } = scene().database;
  const refused = await testCall(await keyOf(partner));
  expect(refused).toMatchObject({ status: 409, body: { error: { details: { environment: 'sandbox' } } } });
  expect(await sql`select 1 from notifications_now where partner_id = ${partner.partnerId}`).toHaveLength(0);
  expect(received).toHaveLength(0);
  expect(await testCall(await keyOf(partner, 'live'))).toMatchObject({ status: 200 });
  expect(JSON.parse(received[0]?.body ?? '')).toMatchObject({ environment: 'live' });
});
