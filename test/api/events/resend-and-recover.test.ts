import { ulid } from 'ulid';
import { useApi } from '../../support/api';
import { emptyNotifications } from '../../support/database';
import { addEndpoint } from '../../../testbed/notifications';
import { addPartner, storeRow } from '../../support/partner-events';
import { refusal } from '../../../testbed/http-call';

/** There is no worker here: rows say what a worker would find. */
const api = useApi();
let other: { partnerId: string; test: string; live: string };
beforeAll(async () => {
  other = await addPartner(api.database, 'P100002');
});
beforeEach(async () => {
  await emptyNotifications(api.database, 'recoveries', 'webhook_secrets', 'webhook_endpoints');
  await api.database.sql`update partners set recovery = 'enabled'`;
  await addEndpoint(api.database, { partnerId: api.partnerId });
});

const store = (wanted: Partial<Parameters<typeof storeRow>[1]> = {}) =>
  storeRow(api.database, { partnerId: api.partnerId, state: 'failed', ...wanted });
const resend = (id: string, key = api.keys.test) => api.call({ path: `/v1/notifications/${id}/resend`, key });
const rowOf = async (id: string) => {
  const [row] = await api.database.sql`select * from notifications_now where notification_id = ${id}`;
  return row as Record<string, unknown>;
};
const changes = (subject: string) => api.database.sql`
  select actor, action, details from change_log where subject = ${subject} order by change_id`;
const keyId = async () => {
  const [row] = await api.database
    .sql`select key_id from api_keys where partner_id = ${api.partnerId} and environment = 'sandbox'`;
  return row?.['key_id'] as string;
};

describe('resend', () => {
  test.each(['failed', 'delivered', 'cancelled', 'expired', 'held'] as const)(
    'one that is %s is pending again, as the same event, under a new generation',
    async (state) => {
      const id = await store({ state });
      const before = await rowOf(id);
      const answer = await resend(id);
      expect(answer.status).toBe(202);
      const { event_id, body, delivered_at } = before;
      expect(answer.body.data).toEqual({ notification_id: id, event_id, status: 'pending' });
      const now = { state: 'queued', generation: 2, priority: 0, body, delivered_at };
      expect(await rowOf(id)).toMatchObject(now);
      const details = { partner_id: api.partnerId, generation: 2, was: state };
      const change = { actor: await keyId(), action: 'notifications.resend', details };
      expect(await changes(id)).toEqual([change]);
      const read = await api.get(`/v1/notifications/${id}`);
      expect(read.body.data).toMatchObject({ status: 'pending', reason: null });
    },
  );

  test('of ten calls at once one is 202, and the others find it under way', async () => {
    const id = await store();
    const answers = await Promise.all(Array.from({ length: 10 }, () => resend(id)));
    const others = answers.filter(({ status }) => status !== 202);
    expect(others).toHaveLength(9);
    const underWay = refusal(409, 'NOTIFICATION_NOT_RESENDABLE', { reason: 'under_way' });
    for (const answer of others) expect(answer).toMatchObject(underWay);
    expect(await rowOf(id)).toMatchObject({ generation: 2 });
    expect(await changes(id)).toHaveLength(1);
  });

  test.each([
    ['under_way', { state: 'queued' }],
    ['under_way', { state: 'started' }],
    ['test', { eventType: 'credit_application.test' }],
    ['payload_removed', { body: '' }],
  ] as const)('%s: 409, and nothing changes', async (reason, wanted) => {
    const id = await store(wanted);
    const before = await rowOf(id);
    const answer = await resend(id);
    expect(answer).toMatchObject(refusal(409, 'NOTIFICATION_NOT_RESENDABLE', { reason }));
    expect(await rowOf(id)).toEqual(before);
    expect(await changes(id)).toEqual([]);
  });

  test('without an active endpoint it is 409', async () => {
    const id = await store({ environment: 'live' });
    const answer = await resend(id, api.keys.live);
    expect(answer).toMatchObject(refusal(409, 'WEBHOOK_NOT_REGISTERED', { environment: 'live' }));
    expect(await rowOf(id)).toMatchObject({ state: 'failed', generation: 1 });
  });

  test("another's, or the other environment's, is 404 as one that is not there, and is not waited for", async () => {
    const theirs = await storeRow(api.database, { partnerId: other.partnerId, state: 'failed' });
    const live = await store({ environment: 'live' });
    const nothing = await resend(`ntf_${ulid()}`);
    expect(nothing).toMatchObject(refusal(404, 'NOTIFICATION_NOT_FOUND'));
    await api.database.sql.begin(async (tx) => {
      // Their delivery is at work: who may not see it must not notice.
      await tx`select 1 from notifications for update`;
      await tx`select 1 from deliveries for update`;
      for (const id of [theirs, live])
        expect(await resend(id)).toMatchObject({ status: 404, body: nothing.body });
    });
    expect(await rowOf(theirs)).toMatchObject({ state: 'failed' });
    expect(await resend('ntf_1')).toMatchObject(refusal(404, 'NOT_FOUND'));
  });
});

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ago = (ms: number) => new Date(Date.now() - ms);
const iso = (ms: number) => ago(ms).toISOString();
const recover = (fields: Record<string, unknown> = {}, key = api.keys.test) =>
  api.call({
    path: '/v1/notifications/recover',
    key,
    body: { created_from: iso(DAY_MS), created_to: iso(-HOUR_MS), ...fields },
  });
const progress = (id: string, key?: string) => api.get(`/v1/notifications/recoveries/${id}`, key);

describe('recover', () => {
  test('matches what failed, expired or is held in the span, and nothing else', async () => {
    for (const state of ['failed', 'expired', 'held'] as const) await store({ state, at: ago(HOUR_MS) });
    // None of these.
    for (const state of ['queued', 'started', 'delivered', 'cancelled'] as const) await store({ state });
    await store({ at: ago(2 * DAY_MS) });
    await store({ environment: 'live' });
    await store({ body: '' });
    await store({ eventType: 'credit_application.test' });
    await storeRow(api.database, { partnerId: other.partnerId, state: 'failed' });
    const once = await store();
    await api.database.sql`update notifications set delivered_at = now() where notification_id = ${once}`;
    const counted = await recover({ dry_run: true });
    expect([counted.status, counted.body.data]).toEqual([200, { matched: 3 }]);
    const earlier = await recover({ dry_run: true, created_to: iso(2 * HOUR_MS) });
    expect(earlier.body.data).toEqual({ matched: 0 });
    expect(await api.database.sql`select 1 from recoveries`).toHaveLength(0);

    const begun = await recover();
    expect(begun.status).toBe(202);
    const { recovery_id: id, matched } = begun.body.data;
    expect(matched).toBe(3);
    expect((await progress(id)).body.data).toEqual({
      recovery_id: id,
      status: 'running',
      matched: 3,
      resent: 0,
      delivered: 0,
      failed: 0,
      created_at: expect.any(String),
      finished_at: null,
    });
    expect(await changes(id)).toMatchObject([{ actor: await keyId(), action: 'recoveries.begin' }]);
  });

  test('of ten at once one begins, in each environment, and the next may once it has ended', async () => {
    await addEndpoint(api.database, { partnerId: api.partnerId, environment: 'live' });
    await addEndpoint(api.database, { partnerId: other.partnerId });
    const many = (key: string) => Promise.all(Array.from({ length: 10 }, () => recover({}, key)));
    for (const [key, environment] of [
      [api.keys.test, 'sandbox'],
      [api.keys.live, 'live'],
      [other.test, 'sandbox'],
    ] as const) {
      const answers = await many(key);
      const begun = answers.filter(({ status }) => status === 202);
      expect(begun).toHaveLength(1);
      const { recovery_id } = begun[0]?.body.data ?? {};
      const underWay = refusal(409, 'RECOVERY_UNDER_WAY', { environment, recovery_id });
      for (const answer of answers.filter((one) => one !== begun[0])) expect(answer).toMatchObject(underWay);
    }
    await api.database.sql`update recoveries set state = 'done', ended_at = now()`;
    expect((await recover()).status).toBe(202);
  });

  test("one of an operator's does not stand in its way", async () => {
    await api.database.sql`insert into recoveries
      (recovery_id, partner_id, environment, since, until, per_second, found, runner)
      values ('rcv_1', ${api.partnerId}, 'sandbox', now(), now(), 1, 1, 'somebody')`;
    expect((await recover()).status).toBe(202);
  });

  test('without an active endpoint it is 409, and counting is not', async () => {
    expect(await recover({}, api.keys.live)).toMatchObject(refusal(409, 'WEBHOOK_NOT_REGISTERED'));
    expect((await recover({ dry_run: true }, api.keys.live)).status).toBe(200);
  });

  test('switched off it is 409, also to count', async () => {
    await api.database.sql`update partners set recovery = 'disabled' where partner_id = ${api.partnerId}`;
    for (const dry_run of [true, false])
      expect(await recover({ dry_run })).toMatchObject(refusal(409, 'RECOVERY_DISABLED'));
    expect((await recover({ dry_run: true }, other.test)).status).toBe(200);
  });

  test.each([
    ['created_from', { created_from: 5 }],
    ['created_from', { created_from: iso(30 * DAY_MS + 60_000) }],
    ['created_from', { created_from: iso(-60_000) }],
    ['created_to', { created_to: iso(2 * DAY_MS) }],
    ['created_to', { created_to: '2026-02-30T00:00:00Z' }],
    ['dry_run', { dry_run: 'true' }],
    ['dry_run', { dry_run: null }],
    ['dryRun', { dryRun: true }],
    ['constructor', { constructor: 1 }],
  ])('a bad %s is 400 that names it: %j', async (field, fields) => {
    const answer = await recover(fields);
    expect(answer).toMatchObject(refusal(400, 'INVALID_REQUEST', { field }));
    expect(await api.database.sql`select 1 from recoveries`).toHaveLength(0);
  });

  test('a month ago to the day is not too long ago', async () => {
    expect((await recover({ created_from: iso(30 * DAY_MS - 60_000), dry_run: true })).status).toBe(200);
  });
});

describe('the progress of a recovery', () => {
  test("another's, or the other environment's, is 404 as one that is not there", async () => {
    const { recovery_id: id } = (await recover()).body.data;
    const nothing = await progress(`rcv_${ulid()}`);
    expect(nothing).toMatchObject(refusal(404, 'RECOVERY_NOT_FOUND'));
    for (const key of [api.keys.live, other.test])
      expect(await progress(id, key)).toMatchObject({ status: 404, body: nothing.body });
    expect(await progress('rcv_1')).toMatchObject(refusal(404, 'NOT_FOUND'));
  });
});
