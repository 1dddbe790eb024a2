import { once } from 'node:events';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { buildInternalApp } from '../../api/internal-app';

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

test('in the embedded stack it answers for localhost and addresses alone', async () => {
  const { ask, close } = await open(true);
  for (const host of OWN) expect([host, await ask(host)]).toEqual([host, 200]);
  for (const host of OTHERS) expect([host, await ask(host)]).toEqual([host, 400]);
  await close();
});

test('in production it is reached by name', async () => {
  const { ask, close } = await open(false);
  for (const host of [...OWN, ...OTHERS]) expect([host, await ask(host)]).toEqual([host, 200]);
  await close();
});
