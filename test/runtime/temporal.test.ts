import { writeFile } from 'node:fs/promises';
import { createServer as createTcpServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import type { ConnectionLike } from '@temporalio/client';
import { answersAt } from '../../dev/temporal';
import { describeConfig, readConfig } from '../../runtime/config/config';
import { ensureSearchAttributes, missingSearchAttributes } from '../../runtime/temporal/namespace';
import { withConnection } from '../../runtime/temporal/connect';
import { externalTemporal, temporalTarget } from '../../runtime/temporal/temporal-target';
import { openNativeConnection } from '../../worker/session';
import { SEARCH_ATTRIBUTES } from '../../domain/notification-states';
import { randomTaskQueue, testTemporal } from '../support/temporal';
import { runDirectory } from '../../testbed/temporary-directory';
import { createTestTls, type TestTls } from '../../testbed/tls';

const temporal = testTemporal();
const directory = runDirectory('temporal-settings');
let tls: TestTls;
let caFile: string;
const listeners: Server[] = [];

beforeAll(async () => {
  tls = await createTestTls();
  caFile = join(directory, 'ca.pem');
  await writeFile(caFile, tls.ca);
});

afterAll(async () => {
  await Promise.all(listeners.map((server) => new Promise((resolve) => server.close(resolve))));
});

async function listen(server: Server): Promise<string> {
  listeners.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `localhost:${(server.address() as AddressInfo).port}`;
}

const missing = (connection: ConnectionLike) => missingSearchAttributes(connection, 'default');

test('means the embedded server when nothing is set', () => {
  const config = readConfig({ STACK_PORT: '7999', TEMPORAL_NAMESPACE: 'quotes' });
  expect(externalTemporal(config)).toBeUndefined();
  expect(temporalTarget(config)).toMatchObject({
    namespace: 'quotes',
    connection: { address: '127.0.0.1:7999' },
  });
});

test.each([
  [{ TEMPORAL_API_KEY: 'k' }, /needs TEMPORAL_ADDRESS/],
  [{ TEMPORAL_TLS: 'true' }, /needs TEMPORAL_ADDRESS/],
  [{ TEMPORAL_ADDRESS: 'a:1', TEMPORAL_TLS_SERVER_CA_CERT_PATH: '/nowhere.pem' }, /nowhere\.pem/],
])('refuses %j', (environment, message) => {
  expect(() => temporalTarget(readConfig(environment))).toThrow(message);
});

test('reads TEMPORAL_TLS and the address strictly, and keeps secrets out of the boot log', () => {
  expect(() => readConfig({ TEMPORAL_TLS: 'yes' })).toThrow(/TEMPORAL_TLS/);
  expect(() => readConfig({ TEMPORAL_ADDRESS: 'https://cloud.example' })).toThrow(/TEMPORAL_ADDRESS/);
  const shown = describeConfig(readConfig({ TEMPORAL_ADDRESS: 'a:1', TEMPORAL_API_KEY: 'hidden' }));
  // A store of logs takes a field as what it is first: null does not decide it.
  expect(shown).toMatchObject({
    TEMPORAL_ADDRESS: 'a:1',
    TEMPORAL_API_KEY: 'set',
    DELIVERY_LADDER_SECONDS: null,
  });
});

test('gives up in time on a server that hangs', async () => {
  const sockets = new Set<{ destroy(): void }>();
  const silent = createTcpServer((socket) => void sockets.add(socket.on('error', () => undefined)));
  const { connection } = temporalTarget(readConfig({ TEMPORAL_ADDRESS: await listen(silent) }));
  await Promise.all([
    expect(withConnection({ namespace: 'default', connection }, 500, missing)).rejects.toThrow(/\w/),
    expect(openNativeConnection(connection, 500)).rejects.toThrow(
      `no connection to Temporal at ${connection.address} without TLS: Temporal: no answer within 500 ms`,
    ),
  ]);
  for (const socket of sockets) socket.destroy();
});

test('a proxy of the environment is not asked', async () => {
  let proxied = 0;
  const proxy = createTcpServer((socket) => {
    proxied += 1;
    socket.destroy();
  });
  const before = process.env['https_proxy'];
  process.env['https_proxy'] = `http://${await listen(proxy)}`;
  try {
    const connection = { address: temporal.env.address ?? '' };
    await withConnection({ namespace: 'default', connection }, 5_000, missing);
    expect(await answersAt(connection, 'default')).toBe(true);
  } finally {
    delete process.env['https_proxy'];
    if (before !== undefined) process.env['https_proxy'] = before;
  }
  expect(proxied).toBe(0);
});

test('registers search attributes where they are missing, two processes at once too', async () => {
  const { connection } = temporal.env;
  const namespace = randomTaskQueue('namespace');
  await connection.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
  });
  const known = async () => missingSearchAttributes(connection, namespace).catch(() => undefined);
  while ((await known()) === undefined) await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await known()).toEqual([...SEARCH_ATTRIBUTES]);
  await Promise.all([
    ensureSearchAttributes(connection, namespace),
    ensureSearchAttributes(connection, namespace),
  ]);
  expect(await known()).toEqual([]);
  await ensureSearchAttributes(connection, namespace);
});
