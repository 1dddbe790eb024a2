import { readFile } from 'node:fs/promises';
import { connect as connectPlainly } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { fileNeeds } from '../support/needs';
import { startNode } from '../../testbed/project-process';
import { startProductionTemporal, type ProductionTemporal } from '../../testbed/production-temporal';
import { temporalTarget } from '../../runtime/temporal/temporal-target';
import { readConfig } from '../../runtime/config/config';
import { openNativeConnection } from '../../worker/session';
import { createTestTls, type TestTls } from '../../testbed/tls';

fileNeeds('Go');

/** Temporal as docker-compose.yml has it, seen by those who reach its port. */
const root = join(__dirname, '../..');
let temporal: ProductionTemporal;
let ca: Buffer;
let stranger: TestTls;

beforeAll(async () => {
  temporal = await startProductionTemporal();
  const file = (name: string) => readFile(join(temporal.certificates, 'client', name));
  ca = await file('ca.pem');
  stranger = await createTestTls([{ type: 'dns', value: 'temporal-client' }]);
  // The job of that name: it waits for the server, and proves that our certificate is accepted.
  const { environment } = temporal;
  const preparing = startNode(['--import', 'tsx', 'bin/prepare-temporal.ts'], { cwd: root, environment });
  expect([await preparing.ended, preparing.output()]).toEqual([0, expect.any(String)]);
}, 1_200_000);

afterAll(async () => {
  await temporal?.close();
});

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
}, 60_000);
