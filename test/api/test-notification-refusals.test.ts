import { addEndpoint, putInState } from '../../testbed/notifications';
import { until } from '../../testbed/until';
import { useApi } from '../support/api';
import { refusal, type CallOptions } from '../../testbed/http-call';

const PATH = '/v1/notifications/test';

const api = useApi();

const call = (options: CallOptions = {}) => api.call({ path: PATH, ...options });

const stored = async () => {
  const [row] = await api.database.sql`
    select (select count(*)::int from notifications_now) as rows,
      (select coalesce(sum(reserved), 0)::int from monthly_counts) as reserved`;
  return row;
};

test('without an endpoint it is 409, whichever the key, and nothing is stored', async () => {
  const without = (environment: string) => refusal(409, 'WEBHOOK_NOT_REGISTERED', { environment });
  expect(await call({ key: api.keys.test })).toMatchObject(without('sandbox'));
  expect(await call({ key: api.keys.live })).toMatchObject(without('live'));
  // That of the other environment is none.
  await addEndpoint(api.database, { partnerId: api.partnerId, environment: 'live' });
  expect(await call({ key: api.keys.test })).toMatchObject(without('sandbox'));
});

it.each(['lender_c', '', 'LENDER_A', 'lender_a&lender=lender_b'])('lender=%s is 400', async (lender) => {
  const answer = await call({ key: api.keys.live, path: `${PATH}?lender=${lender}` });
  expect(answer).toMatchObject(refusal(400, 'INVALID_REQUEST', { field: 'lender' }));
});

test('none of these has stored or reserved anything', async () => {
  expect(await stored()).toEqual({ rows: 0, reserved: 0 });
});

describe('at the limit of the month', () => {
  /** Makes these the counts of the month, and calls. */
  async function callAt(delivered: number, reserved: number) {
    await api.database.sql`
      insert into monthly_counts as c (partner_id, environment, month, event_type, delivered, reserved)
      values (${api.partnerId}, 'live', service_month(), 'credit_application.test', ${delivered}, ${reserved})
      on conflict (partner_id, environment, month, event_type)
      do update set delivered = excluded.delivered, reserved = excluded.reserved`;
    const answer = await call({ key: api.keys.live });
    expect(await stored()).toEqual({ rows: 0, reserved });
    const month_ends_at = expect.stringMatching(/^\d{4}-\d{2}-01T00:00:00\.000Z$/);
    const counts = { environment: 'live', limit: 100, delivered, in_progress: reserved, month_ends_at };
    expect(answer).toMatchObject(refusal(429, 'TEST_NOTIFICATION_LIMIT_REACHED', counts));
    // The rate limit is another matter.
    expect(answer.headers).toMatchObject({
      'ratelimit-policy': '1000000;w=60',
      'ratelimit-limit': '1000000',
    });
    const monthEndsMs = Date.parse(answer.body.error.details.month_ends_at);
    return { monthEndsMs, retryAfter: answer.headers['retry-after'] };
  }

  test('while some are under way it is worth another call in a minute: one may fail', async () => {
    for (const delivered of [98, 0, 99])
      expect((await callAt(delivered, 100 - delivered)).retryAfter).toBe('60');
  });

  test('when all are delivered it is not before the month ends', async () => {
    for (const reserved of [0, 1]) {
      const { monthEndsMs, retryAfter } = await callAt(100, reserved);
      expect(retryAfter).toMatch(/^[1-9]\d*$/);
      expect(Math.abs(Number(retryAfter) - (monthEndsMs - Date.now()) / 1_000)).toBeLessThan(60);
      expect(monthEndsMs - Date.now()).toBeLessThanOrEqual(31 * 86_400_000);
    }
  });
});

/** Ends the notification that is queued, as soon as there is one. @returns its id */
async function endQueued(state: 'failed' | 'cancelled', reason: string): Promise<string> {
  const queued = () => api.database.sql<{ id: string }[]>`select notification_id as id from deliveries`;
  await until(async () => (await queued()).length > 0, 'one is queued');
  const [{ id } = { id: '' }] = await queued();
  await api.database.sql.begin(async (sql) => {
    await putInState({ sql: sql as never }, id, state);
    await sql`update notifications set end_reason = ${reason} where notification_id = ${id}`;
  });
  return id;
}

// There is no worker here: the test ends a notification in its place.
test.each<['failed' | 'cancelled', string, string]>([
  ['failed', 'endpoint_gone', 'webhook_not_registered'],
  ['failed', 'monthly_limit', 'monthly_limit'],
  ['failed', 'exhausted', 'exhausted'],
  ['failed', 'poison', 'internal_error'],
  ['cancelled', 'workflow_cancelled', 'cancelled'],
])(
  'one that ends as %s: %s is 200 with status failed and the reason %s',
  async (state, endReason, reason) => {
    await api.database.sql`update monthly_counts set delivered = 0, reserved = 0`;
    const calling = call({ key: api.keys.live });
    const id = await endQueued(state, endReason);
    await api.database.sql`select pg_notify('attempts', ${id})`;
    const answer = await calling;
    expect(answer.status).toBe(200);
    expect(answer.body.data).toMatchObject({ status: 'failed', reason, attempt: null });
  },
);

test('a call learns of the end although the hint of it was lost', async () => {
  await api.database.sql`update monthly_counts set delivered = 0, reserved = 0`;
  const startedAt = performance.now();
  const calling = call({ key: api.keys.live });
  await endQueued('failed', 'gone');
  expect((await calling).body.data).toMatchObject({ status: 'failed', reason: 'gone' });
  // It looks once a second; without that it would have waited for the whole 10 s.
  expect(performance.now() - startedAt).toBeLessThan(9_000);
});
