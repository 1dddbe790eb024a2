import 'reflect-metadata';
import { KeyObject, webcrypto } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { X509CertificateGenerator } from '@peculiar/x509';
import Fastify, { type FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { Client } from 'undici';
import { buildInternalApp } from '../../api/internal-app';
import { listenerOptions, trustedProxies } from '../../api/listener';
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

  test('leaves it to the proxy to close an idle connection, where Envoy waits an hour', async () => {
    const { headers } = await api.quote({}, { headers: { 'x-forwarded-proto': 'https' } });
    expect(headers['keep-alive']).toBe('timeout=3660');
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
    ['2001:db8::/32, 127.0.0.1/32', '127.0.0.1', true],
    ['127.0.0.2', '127.0.0.1', false],
    ['', '127.0.0.1', false],
    // As a listener on :: sees its IPv4 peers.
    ['127.0.0.1', '::ffff:127.0.0.1', true],
    ['::1,127.0.0.2', '::ffff:127.0.0.1', false],
  ])('%s: %s counts: %s', (proxies, peer, counts) => {
    const isProxy = trustedProxies(readConfig({ TRUSTED_PROXIES: proxies }).TRUSTED_PROXIES);
    expect(isProxy && isProxy(peer)).toBe(counts);
  });

  test.each(['10.0.0.0/33', '10.0.0.0/x', '0.0.0.0/0', '::/0', 'proxy.example', '10.1'])(
    '%s is refused at the start',
    (proxy) => {
      expect(() => readConfig({ TRUSTED_PROXIES: `127.0.0.1,${proxy}` })).toThrow(
        `TRUSTED_PROXIES.1: not an address or a CIDR: ${proxy}`,
      );
    },
  );
});

test('a forged X-Forwarded-Proto is refused from a peer that is not named', async () => {
  const api = await startTestApi({ ownTls: false, environment: { TRUSTED_PROXIES: '10.0.0.0/8,192.0.2.1' } });
  const headers = {
    'x-forwarded-proto': 'https',
    'x-forwarded-for': '192.0.2.1',
    forwarded: 'proto=https',
  };
  const answer = await api.quote({}, { headers });
  await api.close();
  expect(answer).toMatchObject(REFUSED);
  expect(api.logged('TRUSTED_PROXIES does not name its peer')).toMatchObject([{ peer: '127.0.0.1' }]);
});

describe('its own TLS, with an RSA certificate', () => {
  let cert: string;
  let listener: FastifyInstance;
  beforeAll(async () => {
    const algorithm = {
      name: 'RSASSA-PKCS1-v1_5',
      hash: 'SHA-256',
      modulusLength: 2048,
      publicExponent: new Uint8Array([1, 0, 1]),
    };
    const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
    const made = await X509CertificateGenerator.createSelfSigned(
      { name: 'CN=localhost', keys, signingAlgorithm: algorithm },
      webcrypto,
    );
    cert = made.toString('pem');
    const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' });
    listener = Fastify(listenerOptions({ cert, key }, []));
    await listener.listen({ port: 0, host: '127.0.0.1' });
  });
  afterAll(() => listener.close());

  test('closes an idle connection of a client outside after 72 s', async () => {
    const { port } = listener.server.address() as AddressInfo;
    const client = new Client(`https://localhost:${port}`, { connect: { ca: cert } });
    const { headers } = await client.request({ method: 'GET', path: '/' });
    await client.destroy();
    expect(headers['keep-alive']).toBe('timeout=72');
  });

  const agreed = (ciphers: string, ALPNProtocols: string[] = []) =>
    new Promise<string>((resolve) => {
      const maxVersion = ciphers.startsWith('TLS_') ? 'TLSv1.3' : 'TLSv1.2';
      const { port } = listener.server.address() as AddressInfo;
      const at = { port, host: '127.0.0.1', servername: 'localhost', ca: cert };
      const socket = connect({ ...at, ciphers, maxVersion, ALPNProtocols });
      socket.once('secureConnect', () => {
        resolve(socket.alpnProtocol || socket.getCipher().name);
        socket.destroy();
      });
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'refused'));
    });

  test.each([
    'ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-RSA-CHACHA20-POLY1305',
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
  ])('agrees to %s', async (cipher) => {
    expect(await agreed(cipher)).toBe(cipher);
  });

  test.each([
    ['http/1.1', ['h2', 'http/1.0', 'http/1.1']],
    ['http/1.0', ['http/1.0']],
  ])('speaks %s with a client that offers %j', async (protocol, offered) => {
    expect(await agreed('TLS_AES_256_GCM_SHA384', offered)).toBe(protocol);
  });

  test.each([
    ['RSA key exchange', 'AES128-GCM-SHA256'],
    ['CBC', 'ECDHE-RSA-AES128-SHA'],
    ['finite fields', 'DHE-RSA-AES128-GCM-SHA256'],
  ])('agrees to no %s (%s)', async (_what, cipher) => {
    expect(await agreed(cipher)).toMatch(/HANDSHAKE_FAILURE|ECONNRESET/);
  });
});

/** The internal listener on a machine with a browser: a page of another site, whose name leads there, reads nothing. */
const open = async (ownHostOnly: boolean) => {
  const app = buildInternalApp({
    logger: pino({ enabled: false }),
    metrics: async () => 'pfqs_secret 1\n',
    checkReady: async () => undefined,
    ownHostOnly,
    applications: null,
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const ask = async (host: string) => {
    const call = request({ host: '127.0.0.1', port, path: '/metrics', headers: { host } });
    call.end();
    const [answer] = await once(call, 'response');
    answer.resume();
    return answer.statusCode as number;
  };
  return { ask, close: () => app.close() };
};

const OWN = ['localhost', 'LOCALHOST:9464', '127.0.0.1:9464', '127.0.0.2', '[::1]:9464', '192.0.2.7'];
const OTHERS = [
  'evil.example',
  'evil.example:9464',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  'api:8081',
];

test('in the embedded stack the internal listener answers for localhost and addresses alone', async () => {
  const { ask, close } = await open(true);
  for (const host of OWN) expect([host, await ask(host)]).toEqual([host, 200]);
  for (const host of OTHERS) expect([host, await ask(host)]).toEqual([host, 400]);
  await close();
});

test('in production the internal listener is reached by name', async () => {
  const { ask, close } = await open(false);
  for (const host of [...OWN, ...OTHERS]) expect([host, await ask(host)]).toEqual([host, 200]);
  await close();
});
