import { readFile } from 'node:fs/promises';
import { connect as connectPlainly } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { readConfig } from '../../runtime/config/config';
import { temporalTarget } from '../../runtime/temporal/temporal-target';
import { openProductionTemporal, type ProductionTemporal } from '../../testbed/production-temporal';
import { startNode } from '../../testbed/project-process';
import { createTestTls, type TestTls } from '../../testbed/tls';
import { until } from '../../testbed/until';
import { openNativeConnection } from '../../worker/session';
import type { ApiProcess } from '../support/api-process';
import { openCrashScene, type CrashScene } from '../support/crash-scene';
import { deliveryOf } from '../support/histories';
import { fileNeeds } from '../support/needs';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy';
import type { WorkerProcess } from '../support/worker-process';

fileNeeds('Go');

const root = join(__dirname, '../..');
/** Temporal as docker-compose.yml has it: who reaches its port, and one worker whose Temporal answers late, in part, or no more. */
let temporal: ProductionTemporal;
let histories: ReturnType<ProductionTemporal['startPart']>;
let client: Client;
let proxy: TcpProxy;
let scene: CrashScene;
let api: ApiProcess;
let worker: WorkerProcess;
let ca: Buffer;
let stranger: TestTls;

beforeAll(async () => {
  temporal = await openProductionTemporal();
  temporal.startPart(['frontend', 'matching', 'worker']);
  histories = temporal.startPart(['history']);
  const { address, environment } = temporal;
  const { namespace, connection: how } = temporalTarget(readConfig(environment));
  ca = await readFile(join(temporal.certificates, 'client', 'ca.pem'));
  stranger = await createTestTls([{ type: 'dns', value: 'temporal-client' }]);
  // The job of that name: it waits for the server, and proves that our certificate is accepted.
  const preparing = startNode(['--import', 'tsx', 'bin/prepare-temporal.ts'], { cwd: root, environment });
  expect([await preparing.ended, preparing.output()]).toEqual([0, expect.any(String)]);
  const connection = await Connection.connect(how);
  client = new Client({ connection, namespace });
  proxy = await startTcpProxy({ port: Number(address.split(':')[1]) });
  scene = await openCrashScene({
    temporal: { address, namespace, client },
    environment: { ...environment, TEMPORAL_ADDRESS: `127.0.0.1:${proxy.port}` },
  });
  [api, worker] = await Promise.all([scene.api(), scene.worker()]);
  await worker.ready(120_000).catch((error: Error) => {
    throw new Error(`${error.message}\nTemporal's history:\n${histories.output().slice(-3_000)}`);
  });
}, 1_200_000);
afterAll(async () => {
  await scene?.close();
  await proxy?.close();
  await client?.connection.close();
  await temporal?.close();
});
beforeEach(() => scene.reset());

const tlsWith = (pair?: { cert: Buffer | string; key: Buffer | string }) => ({
  serverNameOverride: 'temporal',
  serverRootCACertificate: ca,
  ...(pair && { clientCertPair: { crt: Buffer.from(pair.cert), key: Buffer.from(pair.key) } }),
});

test.each([
  ['without TLS', () => undefined],
  ['without a certificate', () => tlsWith()],
  ["with another authority's certificate", () => tlsWith(stranger)],
])('%s neither a client nor a worker is let in', async (_how, tls) => {
  const options = { address: temporal.address, tls: tls() ?? null };
  await expect(Connection.connect({ ...options, connectTimeout: 3_000 })).rejects.toThrow(/\w/);
  await expect(NativeConnection.connect(options)).rejects.toThrow(/\w/);
});

/** What becomes of a connection within a second. */
async function standing(address: string, pair: { cert?: Buffer | string; key?: Buffer | string } | null) {
  const [host = '', port = ''] = address.split(':');
  const to = { host, port: Number(port) };
  const socket = pair === null ? connectPlainly(to) : connect({ ...to, ca, servername: 'temporal', ...pair });
  const ended = new Promise<string>((resolve) => {
    socket.once('error', () => resolve('refused'));
    socket.once('close', () => resolve('refused'));
  });
  socket.once(pair === null ? 'connect' : 'secureConnect', () => void socket.write('GET / HTTP/1.1\r\n\r\n'));
  const result = await Promise.race([ended, sleep(1_000, 'open')]);
  socket.destroy();
  return result;
}

test('its services refuse a member without a certificate of the authority', async () => {
  expect(await standing(temporal.membershipAddress, null)).toBe('refused');
  expect(await standing(temporal.membershipAddress, {})).toBe('refused');
  expect(await standing(temporal.membershipAddress, stranger)).toBe('refused');
});

test('a process of ours says what is wrong: no certificate, another name', async () => {
  const {
    TEMPORAL_TLS_CLIENT_CERT_PATH: _cert,
    TEMPORAL_TLS_CLIENT_KEY_PATH: _key,
    ...without
  } = temporal.environment;
  const reason = async (environment: Readonly<Record<string, string>>) => {
    const { connection } = temporalTarget(readConfig(environment));
    try {
      await (await openNativeConnection(connection, 5_000)).close();
      return 'let in';
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(await reason(temporal.environment)).toBe('let in');
  expect(await reason(without)).toContain(
    `Temporal at ${temporal.address} with TLS and no client certificate: `,
  );
  const { TEMPORAL_TLS_SERVER_CA_CERT_PATH: _ca, TEMPORAL_TLS_SERVER_NAME: _name, ...plain } = without;
  expect(await reason(plain)).toContain(`Temporal at ${temporal.address} without TLS: `);
  const misnamed = { ...temporal.environment, TEMPORAL_TLS_SERVER_NAME: 'other' };
  expect(await reason(misnamed)).toMatch(/NotValidForName/);
});

test('an answer to a start that comes late still brings the first workflow task', async () => {
  proxy.delay(1_000);
  const { notificationId } = await scene.storeTest();
  await until(() => scene.receiver.received.length > 0, 'the delivery arrived');
  proxy.delay(0);
  await scene.expectDelivered(['delivered']);
  expect(worker.output()).toContain('1 deliveries could not be started');
  const { events } = await deliveryOf(client, notificationId).fetchHistory();
  const timedOut = (events ?? []).filter((event) => event.workflowTaskTimedOutEventAttributes);
  expect(timedOut).toEqual([]);
});

test('a worker is not ready while only the front of Temporal answers', async () => {
  await histories.end('SIGKILL');
  await until(async () => (await worker.readiness()).status === 503, 'it is not ready');
  expect(await scene.post(api)).toMatchObject({ status: 202, body: { data: { status: 'queued' } } });
  temporal.startPart(['history']);
  await worker.ready(120_000);
  await scene.expectDelivered(['delivered']);
}, 300_000);

test('a worker whose new connection is accepted and never answered opens another', async () => {
  proxy.swallow(true);
  proxy.cut();
  await until(async () => (await worker.readiness()).status === 503, 'the connection is lost', 30_000);
  await sleep(2_000);
  proxy.swallow(false);
  expect(await scene.post(api)).toMatchObject({ status: 202, body: { data: { status: 'queued' } } });
  await worker.ready(120_000);
  expect(worker.output()).toContain('answers nothing, although Temporal does');
  await scene.expectDelivered(['delivered']);
  expect(await worker.end('SIGTERM')).toBe(0);
}, 300_000);
