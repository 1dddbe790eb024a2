import { Agent, request } from 'undici';
import { partnerOperations } from '../../../api/routes/operations';
import { SECURITY_HEADERS } from '../../hostile/raw';
import { useApi, type TestApi } from '../../support/api';
import { exampleCall } from '../../support/contract';
import { APPLICATIONS } from '../../support/internal-api';
import type { Answer } from '../../../testbed/http-call';

/** What holds for each of the partners' own endpoints, as for the quote. */
const api = useApi();

/** What each answers without a body: an id of nothing that exists, and no endpoint is registered. */
const ROUTES = partnerOperations
  .filter(({ id }) => id !== 'getFinanceQuote')
  .map((one) => {
    const [method, path] = exampleCall(one);
    if (one.body) return [method, path, 400] as const;
    if (one.call.includes('{')) return [method, path, 404] as const;
    return [method, path, method === 'POST' ? 409 : 200] as const;
  });
const limited = useApi({ environment: { RATE_LIMIT_PER_MINUTE: String(ROUTES.length - 1) } });

const codeOf = ({ status, body }: Answer) => [status, body.error?.code];

describe.each(ROUTES)('%s %s', (method, path, status) => {
  const call = (options: Parameters<TestApi['call']>[0] = {}) => api.call({ method, path, ...options });

  test('has the request id and both forms of the rate limit on its answer', async () => {
    const answer = await call({ headers: { 'x-request-id': 'mine-1' } });
    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject({
      'x-request-id': 'mine-1',
      'content-type': 'application/json; charset=utf-8',
      'ratelimit-policy': '1000000;w=60',
      'ratelimit-remaining': expect.stringMatching(/^\d+$/),
      'x-ratelimit-remaining': expect.stringMatching(/^\d+$/),
    });
  });

  test('needs a key that is valid', async () => {
    for (const key of [null, '', 'sk_test_x', `${api.keys.test}x`, api.keys.test.toLowerCase()]) {
      const answer = await call({ key });
      expect(codeOf(answer)).toEqual([401, 'UNAUTHENTICATED']);
      expect(answer.headers['www-authenticate']).toBe('Bearer');
      expect(answer.headers['ratelimit-limit']).toBeUndefined();
    }
    const scheme = await call({ key: null, headers: { authorization: `Basic ${api.keys.test}` } });
    expect(scheme.status).toBe(401);
  });

  test('knows no other method, whoever asks', async () => {
    for (const other of ['PUT', 'PATCH', 'DELETE', 'OPTIONS', method === 'GET' ? 'POST' : 'GET'])
      for (const key of [api.keys.test, null])
        expect(codeOf(await call({ method: other, key }))).toEqual([404, 'NOT_FOUND']);
  });

  test('is no other path: no slash at its end, no other case, nothing behind it', async () => {
    for (const other of [`${path}/`, path.toUpperCase(), `${path}/x`, path.replace('/v1/', '/v2/')])
      expect(codeOf(await call({ path: other }))).toEqual([404, 'NOT_FOUND']);
  });

  test('refuses a query parameter that it does not know, by name', async () => {
    for (const name of ['unknown', 'statu', 'Status', '__proto__', 'constructor', 'dry_run', 'environment']) {
      const answer = await call({ path: `${path}?${name}=1` });
      expect(codeOf(answer)).toEqual([400, 'INVALID_REQUEST']);
      expect(answer.body.error.details).toEqual({ field: name });
      expect(answer.headers['ratelimit-remaining']).toBeDefined();
    }
    const long = await call({ path: `${path}?${'a'.repeat(2_000)}` });
    expect(long.body.error.details).toEqual({ field: 'a'.repeat(64) });
    expect(codeOf(await call({ path: `${path}?unknown=1`, key: null }))).toEqual([401, 'UNAUTHENTICATED']);
    expect((await call({ path: `${path}?` })).status).toBe(status);
  });

  test('is named in the log without what was asked', async () => {
    await call({ headers: { 'x-request-id': 'find-me' }, path: `${path}?secret=hunter2` });
    const line = api.logged('find-me').at(-1);
    expect(line).toMatchObject({ method, keyId: expect.stringMatching(/^key_/) });
    expect(line.route).not.toMatch(/[\^$]|0000|hunter2/);
  });
});

test.each(ROUTES.filter(([, path]) => /(resend|test)$/.test(path)))(
  '%s %s takes no body',
  async (_method, path) => {
    for (const body of ['{}', ' ', 'x', '{"url":"https://elsewhere.test/"}'])
      expect(codeOf(await api.call({ path, body }))).toEqual([400, 'INVALID_REQUEST']);
  },
);

test('they count against the limit of the key, together', async () => {
  const answers: Answer[] = [];
  for (const [method, path] of ROUTES) answers.push(await limited.call({ method, path }));
  expect(answers.map(({ status }) => status)).toEqual([...ROUTES.slice(0, -1).map((one) => one[2]), 429]);
  const last = answers.at(-1);
  expect(last?.body.error.code).toBe('RATE_LIMIT_EXCEEDED');
  expect(Number(last?.headers['retry-after'])).toBeGreaterThan(0);
});

describe('HEAD answers as GET does, without the body (RFC 9110 §9.3.2); both carry HSTS, nosniff and no-store', () => {
  let agent: Agent;
  beforeAll(() => {
    agent = new Agent({ connect: { ca: api.ca } });
  });
  afterAll(() => agent.destroy());

  async function ask(method: 'GET' | 'HEAD', url: string, key?: string) {
    const answer = await request(url, {
      method,
      // undici would close the connection after HEAD.
      reset: false,
      dispatcher: agent,
      headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
    });
    // Of each request its own, or of the moment.
    const { date: _date, 'x-request-id': requestId, ...headers } = answer.headers;
    expect(requestId).toMatch(/^rq_/);
    expect(headers).toMatchObject(SECURITY_HEADERS);
    for (const name of Object.keys(headers)) if (/remaining$|reset$/.test(name)) headers[name] = 'counted';
    return { status: answer.statusCode, headers, text: await answer.body.text() };
  }

  async function expectTheSame(url: string, status: number, key?: string): Promise<void> {
    const [get, head] = [await ask('GET', url, key), await ask('HEAD', url, key)];
    expect(get.status).toBe(status);
    expect(get.text).not.toBe('');
    expect(head).toEqual({ ...get, text: '' });
  }

  test.each<readonly [string, number, number]>([
    ['/openapi.json', 200, 200],
    ['/llms.txt', 200, 200],
    ['/docs/nothing', 404, 404],
    ['/v1/nothing', 404, 404],
    ['/%zz', 404, 404],
    ['/v1/finance-quote', 404, 404],
    ['/v1/notifications?limit=x', 401, 400],
    ...ROUTES.filter(([method]) => method === 'GET').map(([, path, status]) => [path, 401, status] as const),
  ])('HEAD %s on the public listener: %i without a key, %i with one', async (path, without, keyed) => {
    await expectTheSame(`https://127.0.0.1:${api.port}${path}`, without);
    await expectTheSame(`https://127.0.0.1:${api.port}${path}`, keyed, api.keys.test);
  });

  test.each([
    ['/health', 200],
    ['/ready', 200],
    ['/openapi.json', 200],
    ['/v1/nothing', 404],
    [APPLICATIONS, 404],
    [`${APPLICATIONS}/app_00000000000000000000000000`, 401],
  ])('HEAD %s on the internal listener', async (path, status) => {
    await expectTheSame(`http://127.0.0.1:${api.internalPort}${path}`, status);
  });
});
