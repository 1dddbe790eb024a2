import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { Worker } from 'node:worker_threads';
import { createAuthority, issueCertificate } from '../../runtime/certificates/issue';
import { VALID } from '../../testbed/tls';
import {
  authority,
  certificateFor,
  closeAll,
  closeLater,
  EXPIRED,
  HOST,
  post,
  testSender,
  type ReceiverOptions,
  served,
  startTcpServer,
} from './partner';

afterEach(closeAll);

async function expectTlsFailure(tls: ReceiverOptions['tls'], detail: string | RegExp): Promise<void> {
  let requests = 0;
  const listener: RequestListener = (_request, response) => {
    requests += 1;
    response.end();
  };
  const { receiver, sender } = await served(listener, { tls });
  const result = await sender.send(post(receiver.url));
  expect(result.outcome).toMatchObject({ kind: 'failed', failure: 'tls', httpStatus: null });
  expect(result.detail).toMatch(detail);
  expect(requests).toBe(0);
}

const TOMORROW = {
  notBefore: new Date(Date.now() + 86_400_000),
  notAfter: new Date(Date.now() + 172_800_000),
};
const stranger = createAuthority('Partner authority', VALID);
const ofStranger = async () => issueCertificate(await stranger, [{ type: 'dns', value: HOST }], VALID);

test.each([
  ['that has expired', () => certificateFor(HOST, EXPIRED), 'CERT_HAS_EXPIRED'],
  ['that is not valid yet', () => certificateFor(HOST, TOMORROW), 'CERT_NOT_YET_VALID'],
  ['signed by itself', () => createAuthority(HOST, VALID), /SELF_SIGNED|INVALID_PURPOSE/],
  ['of a stranger', ofStranger, /UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|CERT_SIGNATURE_FAILURE/],
  [
    'of a stranger, with its chain',
    async () => {
      const { key, cert } = await ofStranger();
      return { key, cert: cert + (await stranger).cert };
    },
    /SELF_SIGNED_CERT_IN_CHAIN|CERT_SIGNATURE_FAILURE|UNABLE_TO_VERIFY/,
  ],
  ['for another host', () => certificateFor('other.partner.test'), 'ERR_TLS_CERT_ALTNAME_INVALID'],
])('a certificate %s is refused', async (_what, certificate, detail) => {
  await expectTlsFailure(await certificate(), detail);
});

test('TLS 1.1 is refused, 1.2 is spoken', async () => {
  const certificate = await certificateFor();
  const ciphers = 'DEFAULT@SECLEVEL=0';
  const old = { ...certificate, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers } as const;
  await expectTlsFailure(old, /ERR_SSL|EPROTO/);
  const tls = { ...certificate, maxVersion: 'TLSv1.2' } as const;
  const { receiver, sender } = await served((_request, response) => response.end(), { tls });
  expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ kind: 'delivered' });
});

test('a partner that wants a certificate of ours is a TLS failure, in either version', async () => {
  const certificate = await certificateFor();
  const { cert: ca } = await authority;
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    await expectTlsFailure({ ...certificate, ca, requestCert: true, maxVersion }, /ERR_SSL|EPROTO/);
  }
});

test('so it is when its alert comes while this process is busy, between handshake and request', async () => {
  const workerData = { ...(await certificateFor()), ca: (await authority).cert, requestCert: true };
  const server = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads');
    const server = require('node:tls').createServer(workerData).on('tlsClientError', () => {});
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`,
    { eval: true, workerData },
  );
  closeLater({ close: () => server.terminate() });
  const [port] = (await once(server, 'message')) as [number];
  const sender = await testSender({ ports: [port], timeouts: { headersMs: 2_000 } });
  let isBusy = true;
  const work = () => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    if (isBusy) setImmediate(work);
  };
  work();
  const { outcome } = await sender.send(post(`https://${HOST}:${port}/`));
  isBusy = false;
  expect(outcome).toMatchObject({ kind: 'failed', failure: 'tls' });
});

test('a server that does not speak TLS is a TLS failure, and gets no request', async () => {
  let received = '';
  const { port } = await startTcpServer((socket) => {
    socket.on('data', (chunk) => (received += chunk.toString('latin1')));
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
  });
  const sender = await testSender({ ports: [port] });
  const { outcome } = await sender.send(post(`https://${HOST}:${port}/hook`));
  expect(outcome).toMatchObject({ kind: 'failed', failure: 'tls' });
  expect(received).not.toContain('POST');
});

test('a certificate that changes between attempts is checked anew', async () => {
  let status = 500;
  const { receiver, sender } = await served((_request, response) => {
    response.statusCode = status;
    response.end();
  });
  expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ failure: 'http_status' });
  status = 200;
  receiver.renew(await certificateFor(HOST, EXPIRED));
  expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ failure: 'tls' });
  receiver.renew(await certificateFor());
  expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ kind: 'delivered' });
});

test('no variable of the environment turns the checks off, or leads through a proxy', async () => {
  let proxied = 0;
  const proxy = await startTcpServer((socket) => {
    proxied += 1;
    socket.destroy();
  });
  const address = `http://127.0.0.1:${proxy.port}`;
  const proxies = { HTTPS_PROXY: address, https_proxy: address, ALL_PROXY: address };
  const set = { NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_USE_ENV_PROXY: '1', ...proxies };
  const before = { ...process.env };
  Object.assign(process.env, set);
  try {
    await expectTlsFailure(await certificateFor(HOST, EXPIRED), 'CERT_HAS_EXPIRED');
  } finally {
    for (const name of Object.keys(set)) delete process.env[name];
    Object.assign(process.env, before);
  }
  expect(proxied).toBe(0);
});
