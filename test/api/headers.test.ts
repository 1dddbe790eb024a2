import { goodQuote, useApi } from '../support/api';
import { refusal } from '../support/http-call';

const api = useApi({ environment: { RATE_LIMIT_PER_MINUTE: '100' } });

test.each([
  ['abc-123~!', { 'x-request-id': 'abc-123~!' }],
  ['abc-123~!', { 'x-correlation-id': 'abc-123~!' }],
  ['first', { 'x-request-id': 'first', 'x-correlation-id': 'second' }],
  // An id that cannot be used does not hide the other.
  ['good', { 'x-request-id': 'a b', 'x-correlation-id': 'good' }],
])('the request id is %s for %j', async (id, headers: Record<string, string>) => {
  expect((await api.quote({}, { headers })).headers['x-request-id']).toBe(id);
});

describe('rate-limit headers', () => {
  const names = [
    'ratelimit-policy',
    'ratelimit-limit',
    'ratelimit-remaining',
    'ratelimit-reset',
    'x-ratelimit-limit',
    'x-ratelimit-remaining',
    'x-ratelimit-reset',
  ];

  test.each([
    ['a quote', {}, 200],
    ['a bad field', { loan_amount: 'x' }, 400],
    ['an unknown merchant', { merchant_id: 'M999999' }, 404],
    ['a loan too low', { loan_amount: '1.00' }, 422],
    ['an incomplete merchant', { merchant_id: 'M000005' }, 500],
  ])('stand on the answer to %s', async (_what, fields, status) => {
    const answer = await api.quote(fields);
    expect(answer.status).toBe(status);
    for (const name of names) expect(answer.headers).toHaveProperty(name);
    const limit = { 'ratelimit-policy': '100;w=60', 'ratelimit-limit': '100', 'x-ratelimit-limit': '100' };
    expect(answer.headers).toMatchObject(limit);
    const reset = Number(answer.headers['ratelimit-reset']);
    expect(Number.isInteger(reset) && reset >= 1 && reset <= 60).toBe(true);
    const at = Number(answer.headers['x-ratelimit-reset']) - Date.now() / 1000;
    expect(Math.abs(at - reset)).toBeLessThan(2.5);
  });

  test('count down with each call, and do not stand on a call without a valid key', async () => {
    const [first, second] = [await api.quote(), await api.quote()];
    const [more, less] = [first, second].map(({ headers }) => Number(headers['ratelimit-remaining']));
    expect(less).toBe((more ?? 0) - 1);
    const unkeyed = await api.quote({}, { key: null });
    for (const name of names) expect(unkeyed.headers).not.toHaveProperty(name);
  });

  test('refuse call 101 with 429 and Retry-After, per key', async () => {
    let answer = await api.quote();
    for (let calls = 0; calls < 110 && answer.status === 200; calls += 1) answer = await api.quote();
    expect(answer).toMatchObject(refusal(429, 'RATE_LIMIT_EXCEEDED'));
    expect(answer.headers['ratelimit-remaining']).toBe('0');
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(answer.headers['retry-after']).toBe(answer.headers['ratelimit-reset']);
    expect(await api.quote({}, { key: api.keys.live })).toMatchObject({ status: 200 });
  });

  test('are judged before the body', async () => {
    expect(await api.call({ body: 'not json' })).toMatchObject({ status: 429 });
    expect(await api.call({ body: goodQuote, key: null })).toMatchObject({ status: 401 });
  });
});
