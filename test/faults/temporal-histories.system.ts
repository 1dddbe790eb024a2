import { Client, Connection } from '@temporalio/client';
import { readConfig } from '../../runtime/config/config';
import { ensureNamespace } from '../../runtime/temporal/namespace';
import { temporalTarget } from '../../runtime/temporal/temporal-target';
import { useCrashScene } from '../support/crash-scene';
import { until } from '../../testbed/until';
import { fileNeeds } from '../support/needs';
import { openProductionTemporal, type ProductionTemporal } from '../../testbed/production-temporal';

fileNeeds('Go');

let temporal: ProductionTemporal;
let histories: ReturnType<ProductionTemporal['startPart']>;
let connection: Connection;
const scene = useCrashScene(async () => {
  temporal = await openProductionTemporal();
  temporal.startPart(['frontend', 'matching', 'worker']);
  histories = temporal.startPart(['history']);
  await temporal.ready();
  const { environment, address } = temporal;
  const { namespace, connection: how } = temporalTarget(readConfig(environment));
  connection = await Connection.connect(how);
  await ensureNamespace(connection, { namespace, keepDays: 1 });
  return { temporal: { address, namespace, client: new Client({ connection, namespace }) }, environment };
});
afterAll(async () => {
  await connection?.close();
  await temporal?.close();
});

test('a worker is not ready while only the front of Temporal answers', async () => {
  const [api, worker] = await Promise.all([scene.api(), scene.worker()]);
  await worker.ready(120_000);
  await histories.end('SIGKILL');
  await until(async () => (await worker.readiness()).status === 503, 'it is not ready', 60_000);
  expect(await scene.post(api)).toMatchObject({ status: 202, body: { data: { status: 'queued' } } });
  temporal.startPart(['history']);
  await worker.ready(120_000);
  await scene.expectDelivered(['delivered']);
}, 300_000);
