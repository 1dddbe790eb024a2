import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { connect } from 'node:tls';
import { X509CertificateGenerator } from '@peculiar/x509';
import Fastify from 'fastify';
import { listenerOptions } from '../../api/listener';
import { SECURITY_HEADERS } from '../hostile/raw';
import { startTestApi, type TestApi } from '../support/api';

describe('every answer carries HSTS and nosniff', () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startTestApi();
  });
  afterAll(() => api.close());

  test.each([
    ['a method of no endpoint', '/v1/finance-quote', 404],
    ['the contract', '/openapi.json', 200],
    ['the guide', '/docs/guide', 200],
    ['a source file', '/docs/verify-webhook/go/go.mod', 200],
    ['the page', '/docs/', 200],
    ['the page without its slash', '/docs', 200],
    ['a file of the page', '/docs/static/swagger-ui.css', 200],
    ['no file of it', '/docs/static/none.css', 404],
    ['an unknown path', '/nowhere', 404],
    ['a path that is none', '/%zz', 404],
  ])('%s', async (_what, path, status) => {
    const { headers, ...answer } = await api.fetchText(path);
    expect(answer.status).toBe(status);
    expect(headers).toMatchObject(SECURITY_HEADERS);
    expect(headers['x-request-id']).toMatch(/^rq_/);
  });

  test('a quote, and the refusal of one', async () => {
    expect((await api.quote()).headers).toMatchObject(SECURITY_HEADERS);
    expect((await api.quote({}, { key: null })).headers).toMatchObject(SECURITY_HEADERS);
  });

  test.each(['/health', '/metrics', '/nowhere', '/%zz'])('%s of the internal listener', async (path) => {
    const { headers } = await fetch(`http://127.0.0.1:${api.internalPort}${path}`);
    expect(Object.fromEntries(headers)).toMatchObject(SECURITY_HEADERS);
  });
});

describe('TLS with an RSA certificate', () => {
  let port: number;
  let cert: string;
  const app = async () => {
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
    const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
    const key = `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`;
    return Fastify(listenerOptions({ cert, key }));
  };
  let listener: Awaited<ReturnType<typeof app>>;
  beforeAll(async () => {
    listener = await app();
    await listener.listen({ port: 0, host: '127.0.0.1' });
    ({ port } = listener.server.address() as { port: number });
  });
  afterAll(async () => {
    await listener.close();
  });

  const agreed = (ciphers: string, maxVersion: 'TLSv1.2' | 'TLSv1.3' = 'TLSv1.2') =>
    new Promise<string>((resolve) => {
      const socket = connect({
        port,
        host: '127.0.0.1',
        servername: 'localhost',
        ca: cert,
        ciphers,
        maxVersion,
      });
      socket.once('secureConnect', () => {
        resolve(socket.getCipher().name);
        socket.destroy();
      });
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'refused'));
    });

  test.each(['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-CHACHA20-POLY1305'])(
    'agrees to %s',
    async (cipher) => expect(await agreed(cipher)).toBe(cipher),
  );

  test.each(['TLS_AES_256_GCM_SHA384', 'TLS_AES_128_GCM_SHA256', 'TLS_CHACHA20_POLY1305_SHA256'])(
    'agrees to %s',
    async (cipher) => expect(await agreed(cipher, 'TLSv1.3')).toBe(cipher),
  );

  test.each([
    ['RSA key exchange', 'AES128-GCM-SHA256'],
    ['RSA key exchange', 'AES256-GCM-SHA384'],
    ['RSA key exchange', 'AES256-SHA'],
    ['CBC', 'ECDHE-RSA-AES128-SHA'],
    ['finite fields', 'DHE-RSA-AES128-GCM-SHA256'],
  ])('agrees to no %s (%s)', async (_what, cipher) => {
    expect(await agreed(cipher)).toMatch(/HANDSHAKE_FAILURE|ECONNRESET/);
  });
});
