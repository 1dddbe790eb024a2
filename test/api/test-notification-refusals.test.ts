import { sql } from 'drizzle-orm';
import { registerEndpoint } from '../../db/endpoints/endpoints';
import { startTestApi, type TestApi } from '../support/api';
import type { CallOptions } from '../support/http-call';

const PATH = '/v1/notifications/test';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const call = (options: CallOptions = {}) => api.call({ path: PATH, ...options });

const stored = async () => {
  const [row] = await api.database.db.execute<{ rows: number; reserved: number }>(sql`
    select (select count(*)::int from notifications) as rows,
      (select coalesce(sum(reserved), 0)::int from monthly_counts) as reserved`);
  return row;
};

async function register(environment: 'sandbox' | 'live'): Promise<void> {
  await api.database.db.transaction((tx) =>
    registerEndpoint(tx, {
      partnerId: api.partnerId,
      environment,
      url: 'https://hooks.partner.test/',
      seal: () => ({ keyId: 'k1', ciphertext: Buffer.from('sealed') }),
      replace: false,
    }),
  );
}

test('without an endpoint it is 409, whichever the key, and nothing is stored', async () => {
  for (const [key, environment] of [
    [api.keys.test, 'sandbox'],
    [api.keys.live, 'live'],
  ] as const) {
    const answer = await call({ key });
    expect(answer.status).toBe(409);
    expect(answer.body.error).toMatchObject({ code: 'WEBHOOK_NOT_REGISTERED', details: { environment } });
  }
  expect(await stored()).toEqual({ rows: 0, reserved: 0 });
});

test('a key of the other environment is 409 still', async () => {
  await register('live');
  expect((await call({ key: api.keys.test })).status).toBe(409);
  expect(await stored()).toEqual({ rows: 0, reserved: 0 });
});

it.each(['lender_c', '', 'LENDER_A', 'lender_a&lender=lender_b'])('lender=%s is 400', async (lender) => {
  const answer = await call({ key: api.keys.live, path: `${PATH}?lender=${lender}` });
  expect(answer.status).toBe(400);
  expect(answer.body.error).toMatchObject({ code: 'INVALID_REQUEST', details: { field: 'lender' } });
});

it.each(['{}', ' ', '{"url":"https://elsewhere.test/"}', 'x'])('the body %j is 400', async (body) => {
  const answer = await call({ key: api.keys.live, body });
  expect(answer.status).toBe(400);
  expect(answer.body.error.code).toBe('INVALID_REQUEST');
});

test('without a key it is 401, and another method is 404', async () => {
  expect((await call({ key: null })).status).toBe(401);
  expect((await call({ method: 'GET' })).status).toBe(404);
});

test('none of these has stored or reserved anything', async () => {
  expect(await stored()).toEqual({ rows: 0, reserved: 0 });
});

test('at the limit of the month it is 429 that says when the next month begins', async () => {
  await api.database.db.execute(sql`
    insert into monthly_counts (partner_id, environment, month, event_type, delivered, reserved)
    values (${api.partnerId}, 'live', service_month(), 'credit_application.test', 98, 2)`);
  const answer = await call({ key: api.keys.live });
  expect(answer.status).toBe(429);
  const { code, details } = answer.body.error;
  expect(code).toBe('TEST_NOTIFICATION_LIMIT_REACHED');
  expect(details).toMatchObject({ environment: 'live', limit: 100, used: 100 });
  // Two moments of the same month, whenever this runs.
  const resetsAt = Date.parse(details.resets_at);
  expect(details.resets_at).toMatch(/^\d{4}-\d{2}-01T00:00:00\.000Z$/);
  expect(Math.abs(Number(answer.headers['retry-after']) - (resetsAt - Date.now()) / 1_000)).toBeLessThan(60);
  expect(resetsAt - Date.now()).toBeLessThanOrEqual(31 * 86_400_000);
  expect(await stored()).toEqual({ rows: 0, reserved: 2 });
});
