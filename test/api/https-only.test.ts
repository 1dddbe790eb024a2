import { trustedProxies } from '../../api/listener';
import { readConfig } from '../../runtime/config/config';
import { startTestApi, useApi } from '../support/api';

const error = { code: 'INVALID_REQUEST', message: 'HTTPS is required.' };
const REFUSED = { status: 400, body: { success: false, error } };

describe('behind a named proxy', () => {
  const api = useApi({ ownTls: false, environment: { TRUSTED_PROXIES: '127.0.0.1' } });

  test.each(['https', 'HTTPS'])('takes X-Forwarded-Proto: %s from it', async (proto) => {
    const headers = { 'x-forwarded-proto': proto };
    expect(await api.quote({}, { headers })).toMatchObject({ status: 200 });
    expect(await api.call({ path: '/%zz', headers })).toMatchObject({ status: 404 });
  });

  test.each(['', 'http', 'https, http', 'wss'])('refuses "%s", whatever the path', async (proto) => {
    for (const path of ['/v1/finance-quote', '/nowhere', '/%zz']) {
      const answer = await api.call({ path, body: {}, headers: proto ? { 'x-forwarded-proto': proto } : {} });
      expect(answer).toMatchObject(REFUSED);
      expect(answer.headers['x-request-id']).toMatch(/^rq_/);
      expect(answer.headers).not.toHaveProperty('ratelimit-limit');
    }
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

  const MASKS = ['10.0.0.0/33', '10.0.0.0/x', '0.0.0.0/0', '::/0'];
  test.each([...MASKS, 'proxy.example', '300.1.1.1', '10.1', 'loopback'])(
    '%s is refused at the start',
    (proxy) => {
      expect(() => readConfig({ TRUSTED_PROXIES: `127.0.0.1,${proxy}` })).toThrow(
        `TRUSTED_PROXIES.1: not an address or a CIDR: ${proxy}`,
      );
    },
  );
});

describe('a forged X-Forwarded-Proto', () => {
  test.each(['', '10.0.0.0/8,192.0.2.1'])('is refused from a peer that is not in "%s"', async (proxies) => {
    const api = await startTestApi({ ownTls: false, environment: { TRUSTED_PROXIES: proxies } });
    const headers = {
      'x-forwarded-proto': 'https',
      'x-forwarded-for': '192.0.2.1',
      forwarded: 'proto=https',
    };
    const answer = await api.quote({}, { headers });
    await api.close();
    expect(answer).toMatchObject(REFUSED);
  });
});
