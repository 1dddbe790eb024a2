import { setTimeout as sleep } from 'node:timers/promises';
import { useCrashScene } from '../support/crash-scene';
import { deliveryOf } from '../support/histories';
import { until } from '../../testbed/until';
import { fileNeeds } from '../support/needs';
import { killableProductionTemporal, type KillableTemporal } from '../../testbed/production-temporal';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy';

fileNeeds('Go');

let temporal: KillableTemporal;
let proxy: TcpProxy;
const scene = useCrashScene(async () => {
  temporal = await killableProductionTemporal();
  await temporal.start();
  proxy = await startTcpProxy({ port: Number(temporal.address.split(':')[1]) });
  const environment = { ...temporal.environment, TEMPORAL_ADDRESS: `127.0.0.1:${proxy.port}` };
  return { temporal, environment };
});
afterAll(async () => {
  await proxy?.close();
  await temporal?.close();
});

test('a worker whose new connection is accepted and never answered opens another', async () => {
  const [api, worker] = await Promise.all([scene.api(), scene.worker()]);
  await worker.ready();
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

test('an answer to a start that comes late still brings the first workflow task', async () => {
  const worker = await scene.worker();
  await worker.ready();
  proxy.delay(1_000);
  const { notificationId } = await scene.storeTest();
  await until(() => scene.receiver.received.length > 0, 'the delivery arrived', 60_000);
  proxy.delay(0);
  await scene.expectDelivered(['delivered']);
  expect(worker.output()).toContain('1 deliveries could not be started');
  const { events } = await deliveryOf(temporal.client, notificationId).fetchHistory();
  const timedOut = (events ?? []).filter((event) => event.workflowTaskTimedOutEventAttributes);
  expect(timedOut).toEqual([]);
}, 120_000);
