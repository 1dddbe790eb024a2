import { startTestService, type TestService } from '../support/service';
import type { TestApi } from '../support/api';
import { until, type TestWorker } from '../support/delivery';
import { addEndpoint } from '../support/notifications';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy';
import { testTemporal } from '../support/temporal';
import type { WebhookReceiver } from '../support/webhook-receiver';

const temporal = testTemporal();
let service: TestService;
let api: TestApi;
let receiver: WebhookReceiver;
let proxy: TcpProxy;
let worker: TestWorker;
let keys: string;

beforeAll(async () => {
  const [host = '', port = ''] = temporal.address.split(':');
  proxy = await startTcpProxy({ host, port: Number(port) });
  service = await startTestService(temporal, {
    temporalAddress: `127.0.0.1:${proxy.port}`,
    // What could not be started is not left to the sweep.
    worker: { DISPATCH_SWEEP_MS: '60000' },
  });
  ({ api, receiver, worker, keys } = service);
  await addEndpoint(api.database, { partnerId: api.partnerId, url: receiver.url, keyRing: keys });
}, 300_000);

afterAll(async () => {
  proxy?.refuse(false);
  await service?.close();
  await proxy?.close();
});

test('while Temporal is away a test is answered queued as soon as that is known, and delivered once it is back', async () => {
  proxy.refuse(true);
  proxy.cut();
  const startedAt = performance.now();
  const answer = await api.call({ path: '/v1/notifications/test' });
  expect(answer).toMatchObject({ status: 202, body: { data: { status: 'queued', attempt: null } } });
  // The start is given 1.5 s; without word of it the answer would take 10 s.
  expect(performance.now() - startedAt).toBeLessThan(9_000);
  expect(await api.quote()).toMatchObject({ status: 200 });
  expect(await worker.isReady()).toBe(false);
  expect(receiver.received).toHaveLength(0);

  proxy.refuse(false);
  const { notification_id: id } = answer.body.data;
  const stateOf = async () =>
    (await api.database.sql`select state from notifications_now where notification_id = ${id}`)[0]?.['state'];
  await until(async () => (await stateOf()) === 'delivered', 'the delivery', 45_000);
  expect(receiver.received).toHaveLength(1);
}, 120_000);
