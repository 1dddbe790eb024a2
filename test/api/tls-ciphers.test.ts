import 'reflect-metadata';
import { KeyObject, webcrypto } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { X509CertificateGenerator } from '@peculiar/x509';
import Fastify, { type FastifyInstance } from 'fastify';
import { listenerOptions } from '../../api/listener';

/** Which ciphers a listener with an RSA certificate agrees to. */
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
  listener = Fastify(listenerOptions({ cert, key }));
  await listener.listen({ port: 0, host: '127.0.0.1' });
});
afterAll(() => listener.close());

const agreed = (ciphers: string) =>
  new Promise<string>((resolve) => {
    const maxVersion = ciphers.startsWith('TLS_') ? 'TLSv1.3' : 'TLSv1.2';
    const { port } = listener.server.address() as AddressInfo;
    const at = { port, host: '127.0.0.1', servername: 'localhost', ca: cert };
    const socket = connect({ ...at, ciphers, maxVersion });
    socket.once('secureConnect', () => {
      resolve(socket.getCipher().name);
      socket.destroy();
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'refused'));
  });

test.each([
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-RSA-CHACHA20-POLY1305',
  'TLS_AES_256_GCM_SHA384',
  'TLS_AES_128_GCM_SHA256',
  'TLS_CHACHA20_POLY1305_SHA256',
])('agrees to %s', async (cipher) => {
  expect(await agreed(cipher)).toBe(cipher);
});

test.each([
  ['RSA key exchange', 'AES128-GCM-SHA256'],
  ['RSA key exchange', 'AES256-GCM-SHA384'],
  ['RSA key exchange', 'AES256-SHA'],
  ['CBC', 'ECDHE-RSA-AES128-SHA'],
  ['finite fields', 'DHE-RSA-AES128-GCM-SHA256'],
])('agrees to no %s (%s)', async (_what, cipher) => {
  expect(await agreed(cipher)).toMatch(/HANDSHAKE_FAILURE|ECONNRESET/);
});
