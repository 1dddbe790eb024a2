import { ulid } from 'ulid';
import type { NotificationItem } from '../../../contracts/notifications';
import { startTestApi, type TestApi } from '../../support/api';
import { openApplication, tell } from '../../support/applications';
import { addPartner, addSilentEndpoint, attempt, storeRow } from '../../support/partner-events';
import { refusal } from '../../support/http-call';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());
beforeEach(() => api.database.sql`truncate notifications, deliveries, delivery_attempts`);

const PATH = '/v1/notifications';
const get = (path: string, key = api.keys.test) => api.call({ method: 'GET', path, key });
const list = async (query = '', key = api.keys.test) => {
  const answer = await get(`${PATH}?${query}`, key);
  expect(answer.status).toBe(200);
  return answer.body.data as { notifications: NotificationItem[]; next_cursor: string | null };
};
const idsOf = ({ notifications }: { notifications: NotificationItem[] }) =>
  notifications.map(({ notification_id: id }) => id);
const store = (wanted: Partial<Parameters<typeof storeRow>[1]> = {}) =>
  storeRow(api.database, { partnerId: api.partnerId, ...wanted });
const FAILED = {
  kind: 'failed',
  failure: 'http_status',
  httpStatus: 503,
  durationMs: 12,
  retryAfterMs: null,
} as const;

describe('one notification', () => {
  test('tells its story: pending, retrying with its next attempt, delivered', async () => {
    await addSilentEndpoint(api.database, api.partnerId);
    const quote = { partnerId: api.partnerId };
    const application = await openApplication(api.database, quote);
    const [fresh] = (await list()).notifications;
    expect(fresh).toMatchObject({
      event_type: 'credit_application.created',
      status: 'pending',
      reason: null,
      credit_application_id: application.applicationId,
      merchant_reference: 'basket 2041',
      sequence: 1,
      attempts: 0,
      last_attempt: null,
      next_attempt_at: null,
      delivered_at: null,
    });
    const id = fresh?.notification_id ?? '';

    const beforeMs = Date.now();
    await attempt(api.database, id, FAILED, 60_000);
    const [retrying] = (await list()).notifications;
    expect(retrying).toMatchObject({
      status: 'retrying',
      attempts: 1,
      last_attempt: { outcome: 'failed', http_status: 503, failure: 'http_status', duration_ms: 12 },
    });
    const nextMs = Date.parse(retrying?.next_attempt_at ?? '') - 60_000;
    expect(nextMs).toBeGreaterThan(beforeMs - 5_000);
    expect(nextMs).toBeLessThan(Date.now() + 5_000);

    // A later failure moves it on.
    await attempt(api.database, id, FAILED, 3_600_000);
    const [again] = (await list()).notifications;
    expect(Date.parse(again?.next_attempt_at ?? '')).toBeGreaterThan(nextMs + 3_000_000);

    await attempt(api.database, id, { kind: 'delivered', httpStatus: 204, durationMs: 9 });
    const { body } = await get(`${PATH}/${id}`);
    expect(body.data).toMatchObject({
      status: 'delivered',
      reason: null,
      attempts: 3,
      next_attempt_at: null,
      last_attempt: { outcome: 'delivered', http_status: 204, failure: null },
    });
    expect(body.data.attempt_log.map((one: { number: number }) => one.number)).toEqual([1, 2, 3]);
    expect(Date.parse(body.data.delivered_at)).toBeGreaterThanOrEqual(
      Date.parse(body.data.attempt_log[2].at),
    );
    const [row] = await api.database.sql`select body from notifications_now where notification_id = ${id}`;
    expect(body.data.payload).toBe(row?.['body']);
    const event = JSON.parse(body.data.payload);
    expect(event).toMatchObject({ event_id: body.data.event_id, created_at: body.data.created_at });
    expect((await list()).notifications).toEqual([
      Object.fromEntries(
        Object.entries(body.data).filter(([name]) => name !== 'payload' && name !== 'attempt_log'),
      ),
    ]);
  });

  test('while it is paused no next attempt is planned', async () => {
    await addSilentEndpoint(api.database, api.partnerId);
    const id = await store({ state: 'queued' });
    await attempt(api.database, id, FAILED, 60_000);
    await api.database.sql`update deliveries set paused_at = service_now()`;
    expect((await get(`${PATH}/${id}`)).body.data).toMatchObject({
      status: 'retrying',
      next_attempt_at: null,
    });
  });

  test.each([
    ['failed', 'exhausted', 'exhausted'],
    ['failed', 'gone', 'gone'],
    ['failed', 'poison', 'internal_error'],
    ['held', 'webhook_not_registered', 'webhook_not_registered'],
    ['expired', 'held_too_long', 'held_too_long'],
    ['cancelled', 'operator', 'cancelled'],
  ] as const)('%s: %s is told as %s', async (state, endReason, reason) => {
    const id = await store({ state });
    if (state === 'held') await api.database.sql`update deliveries set hold_reason = ${endReason}`;
    else
      await api.database.sql`update notifications set end_reason = ${endReason} where end_state is not null`;
    expect((await get(`${PATH}/${id}`)).body.data).toMatchObject({ status: state, reason });
  });

  test('its payload is null once it has been removed, and an attempt under way has no end', async () => {
    await addSilentEndpoint(api.database, api.partnerId);
    const id = await store({ state: 'queued', body: '' });
    await api.database
      .sql`insert into delivery_attempts (notification_id, attempt_number, generation, endpoint_id)
      values (${id}, 1, 1, 'whe_x')`;
    const { data } = (await get(`${PATH}/${id}`)).body;
    expect(data.payload).toBeNull();
    expect(data.last_attempt).toBeNull();
    expect(data.attempt_log).toEqual([
      {
        number: 1,
        at: expect.any(String),
        finished_at: null,
        outcome: null,
        http_status: null,
        failure: null,
        duration_ms: null,
      },
    ]);
  });
});

describe('pages', () => {
  test('are newest first, and go on with the cursor until there is none', async () => {
    const start = Date.now() - 100_000;
    const ids: string[] = [];
    for (let at = 0; at < 7; at += 1) ids.unshift(await store({ at: new Date(start + at * 1_000) }));
    const first = await list('limit=3');
    expect(idsOf(first)).toEqual(ids.slice(0, 3));
    const second = await list(`limit=4&cursor=${first.next_cursor}`);
    expect(idsOf(second)).toEqual(ids.slice(3));
    expect(second.next_cursor).toBeNull();
    expect(idsOf(await list())).toEqual(ids);
    expect(idsOf(await list('limit=7'))).toEqual(ids);
  });

  test('each filter finds its own, and several are joined by and', async () => {
    const applicationId = `app_${ulid()}`;
    const eventId = `evt_${ulid()}`;
    const first = { applicationId, merchantReference: 'basket 7', state: 'failed', eventId } as const;
    const wanted = await store(first);
    const second = await store({ applicationId, sequence: 2 });
    const other = await store({ merchantReference: 'basket 8', state: 'held' });
    const test = await store({ eventType: 'credit_application.test' });
    expect(idsOf(await list('status=failed'))).toEqual([wanted]);
    expect(idsOf(await list('status=held'))).toEqual([other]);
    expect(idsOf(await list('event_type=credit_application.test'))).toEqual([test]);
    const application = `credit_application_id=${applicationId}`;
    expect(idsOf(await list(application))).toEqual([second, wanted]);
    expect(idsOf(await list(`${application}&sequence=1`))).toEqual([wanted]);
    expect(idsOf(await list(`${application}&sequence=2`))).toEqual([second]);
    expect(idsOf(await list(`${application}&sequence=3`))).toEqual([]);
    expect(idsOf(await list(`event_id=${eventId}`))).toEqual([wanted]);
    expect(idsOf(await list(`event_id=${eventId}&status=held`))).toEqual([]);
    expect(idsOf(await list(`event_id=evt_${ulid()}`))).toEqual([]);
    expect(idsOf(await list('merchant_reference=basket%208'))).toEqual([other]);
    expect(idsOf(await list('merchant_reference=%20basket%208%20'))).toEqual([other]);
    expect(idsOf(await list('merchant_reference=basket%208&status=held'))).toEqual([other]);
    expect(idsOf(await list('merchant_reference=basket%208&status=failed'))).toEqual([]);
    expect(
      idsOf(await list(`credit_application_id=${applicationId}&event_type=credit_application.accepted`)),
    ).toEqual([second, wanted]);
  });

  test('a span includes its beginning and not its end', async () => {
    const at = new Date('2026-11-21T10:00:00.500Z');
    const id = await store({ at });
    const from = (moment: string) => list(`created_from=${encodeURIComponent(moment)}`).then(idsOf);
    const to = (moment: string) => list(`created_to=${encodeURIComponent(moment)}`).then(idsOf);
    expect(await from('2026-11-21T10:00:00.500Z')).toEqual([id]);
    expect(await from('2026-11-21T11:00:00.500+01:00')).toEqual([id]);
    expect(await from('2026-11-21T10:00:00.501Z')).toEqual([]);
    expect(await to('2026-11-21T10:00:00.500Z')).toEqual([]);
    expect(await to('2026-11-21T10:00:00.501Z')).toEqual([id]);
  });

  test.each([
    ['status', 'status=started'],
    ['status', 'status='],
    ['status', 'status=failed&status=held'],
    ['event_type', 'event_type=credit_application.nothing'],
    ['credit_application_id', 'credit_application_id=app_1'],
    ['event_id', 'event_id='],
    ['event_id', 'event_id=evt_1'],
    ['event_id', `event_id=${`evt_${ulid()}`.toLowerCase()}`],
    ['sequence', 'sequence=1'],
    ['sequence', `sequence=0&credit_application_id=app_${ulid()}`],
    ['sequence', `sequence=1.0&credit_application_id=app_${ulid()}`],
    ['sequence', `sequence=9999999999&credit_application_id=app_${ulid()}`],
    ['merchant_reference', 'merchant_reference=%20'],
    ['merchant_reference', 'merchant_reference=a%00b'],
    ['merchant_reference', `merchant_reference=${'a'.repeat(65)}`],
    ['created_from', 'created_from=yesterday'],
    ['created_from', 'created_from=2026-02-30T00:00:00Z'],
    ['created_from', 'created_from=0001-01-01T00:00:00Z'],
    ['created_to', 'created_to=2026-11-21'],
    ['created_to', 'created_from=2026-11-21T00:00:00Z&created_to=2026-11-21T00:00:00Z'],
    ['limit', 'limit=0'],
    ['limit', 'limit=101'],
    ['limit', 'limit=1.5'],
    ['limit', 'limit=25&limit=26'],
    ['cursor', 'cursor='],
    ['cursor', 'cursor=%00'],
    ['cursor', 'cursor=abc'],
  ])('a bad %s is 400 that names it: %s', async (field, query) => {
    const answer = await get(`${PATH}?${query}`);
    expect(answer).toMatchObject(refusal(400, 'INVALID_REQUEST', { field }));
  });
});

describe('a cursor', () => {
  let cursor: string;
  let other: { test: string; live: string };
  beforeAll(async () => {
    other = await addPartner(api.database, 'P100002');
  });
  beforeEach(async () => {
    for (let at = 0; at < 3; at += 1) await store({ state: 'failed' });
    cursor = (await list('limit=1&status=failed')).next_cursor ?? '';
    expect(cursor).not.toBe('');
  });
  const refused = async (query: string, key?: string) => {
    const answer = await get(`${PATH}?${query}`, key);
    expect(answer).toMatchObject(refusal(400, 'INVALID_REQUEST', { field: 'cursor' }));
  };

  test('is good for the filters it was made with, whatever the limit', async () => {
    expect(idsOf(await list(`limit=2&status=failed&cursor=${cursor}`))).toHaveLength(2);
    await refused(`cursor=${cursor}`);
    await refused(`status=held&cursor=${cursor}`);
    await refused(`status=failed&event_type=credit_application.accepted&cursor=${cursor}`);
    await refused(`status=failed&created_from=2026-11-01T00:00:00Z&cursor=${cursor}`);
    await refused(`status=failed&event_id=evt_${ulid()}&cursor=${cursor}`);
  });

  test("is of no use to another partner, nor in the same partner's other environment", async () => {
    await refused(`status=failed&cursor=${cursor}`, api.keys.live);
    await refused(`status=failed&cursor=${cursor}`, other.test);
    await refused(`status=failed&cursor=${cursor}`, other.live);
  });

  test('cannot be changed in any character, nor made', async () => {
    for (let at = 0; at < cursor.length; at += 1) {
      const changed = cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1);
      await refused(`status=failed&cursor=${changed}`);
    }
    await refused(`status=failed&cursor=${cursor.slice(0, -1)}`);
    await refused(`status=failed&cursor=${cursor}A`);
    await refused(`status=failed&cursor=${cursor.slice(0, 34)}${'A'.repeat(cursor.length - 34)}`);
    await refused(`status=failed&cursor=${Buffer.from(ulid()).toString('base64url')}`);
  });

  test('is good in every process, and after a restart', async () => {
    const second = await startTestApi({ databaseUrl: api.databaseUrl, keys: api.keys });
    try {
      const path = `${PATH}?status=failed&cursor=${cursor}`;
      expect(await second.call({ method: 'GET', path })).toMatchObject({ status: 200 });
    } finally {
      await second.close();
    }
  });
});

describe('what belongs to others', () => {
  let other: { partnerId: string; test: string; live: string };
  beforeAll(async () => {
    other = await addPartner(api.database, 'P100003');
  });
  const missing = `ntf_${ulid()}`;

  test('is in no list', async () => {
    await store({ environment: 'live' });
    await storeRow(api.database, { partnerId: other.partnerId });
    expect(idsOf(await list())).toEqual([]);
    const applicationId = `app_${ulid()}`;
    await storeRow(api.database, { partnerId: other.partnerId, applicationId, merchantReference: 'x' });
    expect(idsOf(await list(`credit_application_id=${applicationId}`))).toEqual([]);
    expect(idsOf(await list('merchant_reference=x'))).toEqual([]);
    const eventId = `evt_${ulid()}`;
    await storeRow(api.database, { partnerId: other.partnerId, eventId });
    await store({ environment: 'live', eventId });
    expect(idsOf(await list(`event_id=${eventId}`))).toEqual([]);
  });

  test('is 404, exactly as what does not exist', async () => {
    const theirs = await storeRow(api.database, { partnerId: other.partnerId });
    const live = await store({ environment: 'live' });
    const shape = async (path: string, key?: string) => {
      const { status, headers, body } = await get(path, key);
      return { status, names: Object.keys(headers).toSorted(), length: headers['content-length'], body };
    };
    const nothing = await shape(`${PATH}/${missing}`);
    expect(nothing).toMatchObject(refusal(404, 'NOTIFICATION_NOT_FOUND'));
    expect(await shape(`${PATH}/${theirs}`)).toEqual(nothing);
    expect(await shape(`${PATH}/${live}`)).toEqual(nothing);
    expect((await get(`${PATH}/${live}`, api.keys.live)).status).toBe(200);
    expect((await get(`${PATH}/${theirs}`, other.test)).status).toBe(200);
  });

  test.each([
    'test',
    'recover',
    'recoveries',
    'ntf_1',
    `ntf_${'0'.repeat(25)}I`,
    `NTF_${'0'.repeat(26)}`,
    `${missing}0`,
    '',
  ])('%s is no id, so there is no such path, with a key or without', async (id) => {
    for (const key of [api.keys.test, null]) {
      const answer = await api.call({ method: 'GET', path: `${PATH}/${id}`, key });
      expect(answer.status).toBe(404);
      expect(answer.body.error.code).toBe('NOT_FOUND');
    }
  });

  test('without a key it is 401', async () => {
    for (const path of [PATH, `${PATH}/${missing}`, `${PATH}?status=x`])
      expect((await api.call({ method: 'GET', path, key: null })).status).toBe(401);
  });
});

describe('an application', () => {
  test('is read back with every event as it was sent', async () => {
    const { applicationId } = await openApplication(api.database, { partnerId: api.partnerId });
    for (const status of ['submitted', 'accepted', 'signed'] as const)
      await tell(api.database, applicationId, status, { occurredAt: new Date('2026-11-20T09:00:00.250Z') });
    const { status, body } = await get(`/v1/credit-applications/${applicationId}`);
    expect(status).toBe(200);
    const rows = await api.database.sql`
      select body, notification_id from notifications_now where application_id = ${applicationId} order by sequence`;
    const sent = rows.map((row) => ({
      ...JSON.parse(row['body'] as string),
      notification_id: row['notification_id'],
    }));
    expect(body.data.events).toEqual(
      sent.map(({ sequence, event_id, notification_id, event_type, data }) => ({
        sequence,
        event_id,
        notification_id,
        event_type,
        status: data.status,
        previous_status: data.previous_status,
        occurred_at: data.occurred_at,
      })),
    );
    const {
      status: state,
      previous_status: _,
      loan_amount: __,
      customer_deposit: ___,
      occurred_at: ____,
      ...same
    } = sent.at(-1).data;
    expect(same).toMatchObject({ credit_product: 'Classic 12' });
    expect(body.data).toMatchObject({ ...same, status: state, updated_at: sent.at(-1).created_at });
    expect(body.data.created_at).toBe(sent[0].created_at);
  });

  test('of another partner or environment is 404, as one that does not exist', async () => {
    const other = await addPartner(api.database, 'P100004');
    const theirs = await openApplication(api.database, { partnerId: other.partnerId });
    const live = await openApplication(api.database, { partnerId: api.partnerId, environment: 'live' });
    const answers = await Promise.all(
      [`app_${ulid()}`, theirs.applicationId, live.applicationId].map((id) =>
        get(`/v1/credit-applications/${id}`),
      ),
    );
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 404, body: answers[0]?.body });
      expect(answer.body.error.code).toBe('APPLICATION_NOT_FOUND');
    }
    expect((await get(`/v1/credit-applications/${live.applicationId}`, api.keys.live)).status).toBe(200);
    const path = '/v1/credit-applications/app_1';
    expect((await get(path)).body.error.code).toBe('NOT_FOUND');
  });
});
