import { ulid } from 'ulid';
import type { NotificationItem } from '../../../contracts/notifications';
import { useApi } from '../../support/api';
import { emptyNotifications } from '../../support/database';
import { openApplication, tell } from '../../support/applications';
import { addEndpoint } from '../../../testbed/notifications';
import { addPartner, attempt, storeRow } from '../../support/partner-events';
import { refusal } from '../../../testbed/http-call';
import { DELIVERED, FAILED } from '../../../testbed/values';

const api = useApi();
let other: Awaited<ReturnType<typeof addPartner>>;
beforeAll(async () => {
  other = await addPartner(api.database, 'P100002');
});
beforeEach(() => emptyNotifications(api.database));

const PATH = '/v1/notifications';
const list = async (query = '', key = api.keys.test) => {
  const answer = await api.get(`${PATH}?${query}`, key);
  expect(answer.status).toBe(200);
  return answer.body.data as { notifications: NotificationItem[]; next_cursor: string | null };
};
const idsOf = ({ notifications }: { notifications: NotificationItem[] }) =>
  notifications.map(({ notification_id: id }) => id);
const store = (wanted: Partial<Parameters<typeof storeRow>[1]> = {}) =>
  storeRow(api.database, { partnerId: api.partnerId, ...wanted });
describe('one notification', () => {
  test('tells its story: pending, retrying with its next attempt, delivered', async () => {
    await addEndpoint(api.database, { partnerId: api.partnerId });
    const application = await openApplication(api.database, { partnerId: api.partnerId });
    const [fresh] = (await list()).notifications;
    const of = { credit_application_id: application.applicationId, merchant_reference: 'basket 2041' };
    const nothing = { last_attempt: null, next_attempt_at: null, delivered_at: null, reason: null };
    const created = { event_type: 'credit_application.created', sequence: 1 };
    expect(fresh).toMatchObject({ ...of, ...created, ...nothing, status: 'pending', attempts: 0 });
    const id = fresh?.notification_id ?? '';

    const beforeMs = Date.now();
    await attempt(api.database, id, FAILED, 60_000);
    const [retrying] = (await list()).notifications;
    expect(retrying).toMatchObject({
      status: 'retrying',
      attempts: 1,
      last_attempt: { outcome: 'failed', http_status: 503, failure: 'http_status', duration_ms: 7 },
    });
    const nextMs = Date.parse(retrying?.next_attempt_at ?? '') - 60_000;
    expect(nextMs).toBeGreaterThan(beforeMs - 5_000);
    expect(nextMs).toBeLessThan(Date.now() + 5_000);

    // A later failure moves it on.
    await attempt(api.database, id, FAILED, 3_600_000);
    const [again] = (await list()).notifications;
    expect(Date.parse(again?.next_attempt_at ?? '')).toBeGreaterThan(nextMs + 3_000_000);

    await attempt(api.database, id, DELIVERED);
    const { body } = await api.get(`${PATH}/${id}`);
    expect(body.data).toMatchObject({
      status: 'delivered',
      reason: null,
      attempts: 3,
      next_attempt_at: null,
      last_attempt: { outcome: 'delivered', http_status: 200, failure: null },
    });
    expect(body.data.attempt_log).toMatchObject([{ number: 1 }, { number: 2 }, { number: 3 }]);
    const { payload, attempt_log: log, ...listed } = body.data;
    expect(Date.parse(listed.delivered_at)).toBeGreaterThanOrEqual(Date.parse(log[2].at));
    const [row] = await api.database.sql`select body from notifications_now where notification_id = ${id}`;
    expect(payload).toBe(row?.['body']);
    const { event_id, created_at } = listed;
    expect(JSON.parse(payload)).toMatchObject({ event_id, created_at });
    expect((await list()).notifications).toEqual([listed]);
  });

  test('while it is paused no next attempt is planned', async () => {
    await addEndpoint(api.database, { partnerId: api.partnerId });
    const id = await store({ state: 'queued' });
    await attempt(api.database, id, FAILED, 60_000);
    await api.database.sql`update deliveries set paused_at = service_now()`;
    const { data } = (await api.get(`${PATH}/${id}`)).body;
    expect(data).toMatchObject({ status: 'retrying', next_attempt_at: null });
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
    expect((await api.get(`${PATH}/${id}`)).body.data).toMatchObject({ status: state, reason });
  });

  test('its payload is null once it has been removed, and an attempt under way has no end', async () => {
    await addEndpoint(api.database, { partnerId: api.partnerId });
    const id = await store({ state: 'queued', body: '' });
    await api.database
      .sql`insert into delivery_attempts (notification_id, attempt_number, generation, endpoint_id)
      values (${id}, 1, 1, 'whe_x')`;
    const { data } = (await api.get(`${PATH}/${id}`)).body;
    const ended = { finished_at: null, outcome: null, http_status: null, failure: null, duration_ms: null };
    const log = [{ number: 1, at: expect.any(String), ...ended }];
    expect(data).toMatchObject({ payload: null, last_attempt: null, attempt_log: log });
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
    const application = `credit_application_id=${applicationId}`;
    for (const [query, ids] of [
      ['status=failed', [wanted]],
      ['status=held', [other]],
      ['event_type=credit_application.test', [test]],
      [application, [second, wanted]],
      [`${application}&sequence=1`, [wanted]],
      [`${application}&sequence=3`, []],
      [`${application}&event_type=credit_application.accepted`, [second, wanted]],
      [`event_id=${eventId}`, [wanted]],
      [`event_id=${eventId}&status=held`, []],
      [`event_id=evt_${ulid()}`, []],
      ['merchant_reference=basket%208', [other]],
      ['merchant_reference=%20basket%208%20', [other]],
      ['merchant_reference=basket%208&status=failed', []],
    ] as const)
      expect([query, idsOf(await list(query))]).toEqual([query, ids]);
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
    ['status', 'status=failed&status=held'],
    ['event_type', 'event_type=credit_application.nothing'],
    ['credit_application_id', 'credit_application_id=app_1'],
    ['event_id', 'event_id=evt_1'],
    ['sequence', 'sequence=1'],
    ['sequence', `sequence=0&credit_application_id=app_${ulid()}`],
    ['sequence', `sequence=1.0&credit_application_id=app_${ulid()}`],
    ['merchant_reference', 'merchant_reference=%20'],
    ['merchant_reference', 'merchant_reference=a%00b'],
    ['merchant_reference', `merchant_reference=${'a'.repeat(65)}`],
    ['created_from', 'created_from=yesterday'],
    ['created_to', 'created_to=2026-11-21'],
    ['created_to', 'created_from=2026-11-21T00:00:00Z&created_to=2026-11-21T00:00:00Z'],
    ['limit', 'limit=0'],
    ['cursor', 'cursor=abc'],
  ])('a bad %s is 400 that names it: %s', async (field, query) => {
    const answer = await api.get(`${PATH}?${query}`);
    expect(answer).toMatchObject(refusal(400, 'INVALID_REQUEST', { field }));
  });
});

describe('a cursor', () => {
  const second = useApi(async () => ({ databaseUrl: api.databaseUrl, keys: api.keys }));
  let cursor: string;
  beforeEach(async () => {
    for (let at = 0; at < 3; at += 1) await store({ state: 'failed' });
    cursor = (await list('limit=1&status=failed')).next_cursor ?? '';
    expect(cursor).not.toBe('');
  });
  const refused = async (query: string, key?: string) => {
    const answer = await api.get(`${PATH}?${query}`, key);
    expect(answer).toMatchObject(refusal(400, 'INVALID_REQUEST', { field: 'cursor' }));
  };

  test('is good for the filters it was made with, whatever the limit', async () => {
    expect(idsOf(await list(`limit=2&status=failed&cursor=${cursor}`))).toHaveLength(2);
    const more = ['event_type=credit_application.accepted', 'created_from=2026-11-01T00:00:00Z'];
    for (const filter of [...more, `event_id=evt_${ulid()}`])
      await refused(`status=failed&${filter}&cursor=${cursor}`);
    for (const filter of ['', 'status=held&']) await refused(`${filter}cursor=${cursor}`);
  });

  test("is of no use to another partner, nor in the same partner's other environment", async () => {
    for (const key of [api.keys.live, other.test, other.live])
      await refused(`status=failed&cursor=${cursor}`, key);
  });

  test('cannot be changed in any character, nor made', async () => {
    for (let at = 0; at < cursor.length; at += 1) {
      const changed = cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1);
      await refused(`status=failed&cursor=${changed}`);
    }
    const halfMade = cursor.slice(0, 34).padEnd(cursor.length, 'A');
    const position = Buffer.from(ulid()).toString('base64url');
    for (const made of [cursor.slice(0, -1), `${cursor}A`, halfMade, position])
      await refused(`status=failed&cursor=${made}`);
  });

  test('is good in every process, and after a restart', async () => {
    expect(await second.get(`${PATH}?status=failed&cursor=${cursor}`)).toMatchObject({ status: 200 });
  });
});

describe('what belongs to others', () => {
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
      const { status, headers, body } = await api.get(path, key);
      return { status, names: Object.keys(headers).toSorted(), length: headers['content-length'], body };
    };
    const nothing = await shape(`${PATH}/${missing}`);
    expect(nothing).toMatchObject(refusal(404, 'NOTIFICATION_NOT_FOUND'));
    expect(await shape(`${PATH}/${theirs}`)).toEqual(nothing);
    expect(await shape(`${PATH}/${live}`)).toEqual(nothing);
    expect((await api.get(`${PATH}/${live}`, api.keys.live)).status).toBe(200);
    expect((await api.get(`${PATH}/${theirs}`, other.test)).status).toBe(200);
  });

  const ILL_FORMED = ['ntf_1', `ntf_${'0'.repeat(25)}I`, `NTF_${'0'.repeat(26)}`, `${missing}0`, ''];
  test.each(['test', 'recover', 'recoveries', ...ILL_FORMED])(
    '%s is no id, so there is no such path, with a key or without',
    async (id) => {
      for (const key of [api.keys.test, null])
        expect(await api.get(`${PATH}/${id}`, key)).toMatchObject(refusal(404, 'NOT_FOUND'));
    },
  );
});

describe('an application', () => {
  test('is read back with every event as it was sent', async () => {
    const { applicationId } = await openApplication(api.database, { partnerId: api.partnerId });
    for (const status of ['submitted', 'accepted', 'signed'] as const)
      await tell(api.database, applicationId, status, { occurredAt: new Date('2026-11-20T09:00:00.250Z') });
    const { status, body } = await api.get(`/v1/credit-applications/${applicationId}`);
    expect(status).toBe(200);
    const rows = await api.database.sql`
      select body, notification_id from notifications_now where application_id = ${applicationId} order by sequence`;
    const sent = rows.map((row) => ({
      ...JSON.parse(row['body'] as string),
      notification_id: row['notification_id'],
    }));
    expect(body.data.events).toEqual(
      sent.map(({ sequence, event_id, notification_id, event_type, data }) => {
        const { status, previous_status, occurred_at } = data;
        return { sequence, event_id, notification_id, event_type, status, previous_status, occurred_at };
      }),
    );
    const last = sent.at(-1);
    const { events: _events, created_at, updated_at, ...application } = body.data;
    expect(last.data).toMatchObject(application);
    expect(application).toMatchObject({ status: 'signed', credit_product: 'Classic 12' });
    expect([created_at, updated_at]).toEqual([sent[0].created_at, last.created_at]);
  });

  test('of another partner or environment is 404, as one that does not exist', async () => {
    const theirs = await openApplication(api.database, { partnerId: other.partnerId });
    const live = await openApplication(api.database, { partnerId: api.partnerId, environment: 'live' });
    const read = (id: string, key?: string) => api.get(`/v1/credit-applications/${id}`, key);
    const nothing = await read(`app_${ulid()}`);
    expect(nothing).toMatchObject(refusal(404, 'APPLICATION_NOT_FOUND'));
    for (const { applicationId } of [theirs, live])
      expect(await read(applicationId)).toMatchObject({ status: 404, body: nothing.body });
    expect((await read(live.applicationId, api.keys.live)).status).toBe(200);
    expect(await read('app_1')).toMatchObject(refusal(404, 'NOT_FOUND'));
  });
});
