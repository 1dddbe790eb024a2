import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { connect } from 'node:tls';
import { X509CertificateGenerator } from '@peculiar/x509';
import Fastify from 'fastify';
import { listenerOptions } from '../../api/listener';

/** Which ciphers a listener with an RSA certificate agrees to. */
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

const agreed = (ciphers: string) =>
  new Promise<string>((resolve) => {
    const maxVersion = ciphers.startsWith('TLS_') ? 'TLSv1.3' : 'TLSv1.2';
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
