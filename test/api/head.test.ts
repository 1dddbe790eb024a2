import { Agent, request } from 'undici';
import { SECURITY_HEADERS } from '../hostile/raw';
import { partnerOperations } from '../../api/routes/operations';
import { useApi } from '../support/api';
import { exampleCall } from '../support/contract';
import { APPLICATIONS } from '../support/internal-api';

/** HEAD answers as GET does, without the body (RFC 9110 §9.3.2). Both carry HSTS and nosniff. */

const api = useApi();
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

test.each([
  ['/openapi.json', 200, 200],
  ['/llms.txt', 200, 200],
  ['/docs/nothing', 404, 404],
  ['/v1/nothing', 404, 404],
  ['/%zz', 404, 404],
  ['/v1/notifications?limit=x', 401, 400],
  ...partnerOperations.map((one): [string, number, number] => {
    const [method, path] = exampleCall(one);
    return method === 'POST' ? [path, 404, 404] : [path, 401, one.call.includes('{') ? 404 : 200];
  }),
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
