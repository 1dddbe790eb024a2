import { request } from 'undici';
import { trustedProxies } from '../../api/listener';
import { readConfig } from '../../runtime/config/config';
import { exchange } from '../hostile/raw';
import { goodQuote, startTestApi, useApi } from '../support/api';

const refusal = { success: false, error: { code: 'INVALID_REQUEST', message: 'HTTPS is required.' } };

async function post(port: number, headers: Record<string, string>, path = '/v1/finance-quote') {
  const answer = await request(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    // An API that ends waits a second for the next request of a connection that is kept.
    reset: true,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(goodQuote),
  });
  return { status: answer.statusCode, headers: answer.headers, body: await answer.body.json() };
}

describe('behind a named proxy', () => {
  const api = useApi({ ownTls: false, environment: { TRUSTED_PROXIES: '127.0.0.1' } });

  test.each(['https', 'HTTPS'])('takes X-Forwarded-Proto: %s from it', async (proto) => {
    const headers = { 'x-forwarded-proto': proto, authorization: `Bearer ${api.keys.test}` };
    expect(await post(api.port, headers)).toMatchObject({ status: 200 });
    expect(await post(api.port, headers, '/%zz')).toMatchObject({ status: 404 });
  });

  test.each([
    {},
    { 'x-forwarded-proto': 'http' },
    { 'x-forwarded-proto': 'https, http' },
    { 'x-forwarded-proto': 'wss' },
  ])('refuses %p', async (headers) => {
    const authorization = `Bearer ${api.keys.test}`;
    const answer = await post(api.port, { ...(headers as Record<string, string>), authorization });
    expect(answer).toMatchObject({ status: 400, body: refusal });
    expect(answer.headers['x-request-id']).toMatch(/^rq_/);
    expect(answer.headers).not.toHaveProperty('ratelimit-limit');
  });

  test('refuses plain HTTP before it looks for the path', async () => {
    expect(await post(api.port, {}, '/nowhere')).toMatchObject({ status: 400, body: refusal });
    expect(await post(api.port, {}, '/%zz')).toMatchObject({ status: 400, body: refusal });
  });
});

describe('the proxies that are named', () => {
  test.each([
    ['127.0.0.1', '127.0.0.1', true],
    ['127.0.0.0/8', '127.0.0.1', true],
    ['192.0.2.1, 10.0.0.0/8,127.0.0.1', '127.0.0.1', true],
    ['2001:db8::/32,127.0.0.1/32', '127.0.0.1', true],
    ['127.0.0.2', '127.0.0.1', false],
    // As a listener on :: sees its IPv4 peers.
    ['127.0.0.1', '::ffff:127.0.0.1', true],
    ['192.0.2.1,127.0.0.0/8', '::ffff:127.0.0.1', true],
    ['::1,127.0.0.2', '::ffff:127.0.0.1', false],
  ])('%s: %s counts: %s', (proxies, peer, counts) => {
    const isProxy = trustedProxies(readConfig({ TRUSTED_PROXIES: proxies }).TRUSTED_PROXIES);
    expect(isProxy && isProxy(peer)).toBe(counts);
  });

  test.each([
    'proxy.example',
    '10.0.0.0/33',
    '10.0.0.0/x',
    '300.1.1.1',
    '0.0.0.0/0',
    '::/0',
    '10.1',
    'loopback',
  ])('%s is refused at the start, with the name of the setting', (proxy) => {
    expect(() => readConfig({ TRUSTED_PROXIES: `127.0.0.1,${proxy}` })).toThrow(
      `TRUSTED_PROXIES.1: not an address or a CIDR: ${proxy}`,
    );
  });
});

describe('a forged X-Forwarded-Proto', () => {
  test.each(['', '10.0.0.0/8,192.0.2.1'])('is refused from a peer that is not in "%s"', async (proxies) => {
    const api = await startTestApi({ ownTls: false, environment: { TRUSTED_PROXIES: proxies } });
    const forged = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.1', forwarded: 'proto=https' };
    const answer = await post(api.port, { ...forged, authorization: `Bearer ${api.keys.test}` });
    await api.close();
    expect(answer).toMatchObject({ status: 400, body: refusal });
  });
});

describe('own TLS', () => {
  const api = useApi();

  test('a plain request to the TLS port gets no answer of ours', async () => {
    const plain = { port: api.port, ca: null };
    const { answers } = await exchange(plain, 'POST /v1/finance-quote HTTP/1.1\r\nHost: a\r\n\r\n');
    expect(answers).toEqual([]);
  });
});
