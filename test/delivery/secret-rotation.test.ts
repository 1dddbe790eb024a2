import { DELIVERY_SIGNALS, deliveryWorkflowId } from '../../workflows/names';
import { startTestWorker, until, type TestWorker } from '../support/delivery';
import { addEndpoint, advanceServiceClock, setServiceClock, storeStatus } from '../support/notifications';
import { randomTaskQueue, testTemporal } from '../support/temporal';
import { startTraffic } from '../support/traffic';
import {
  judgeSignatures,
  startWebhookReceiver,
  type Received,
  type WebhookReceiver,
} from '../support/webhook-receiver';
import { createOpsUnderTest, type OpsUnderTest } from '../ops/run';

const PARTNER = ['--partner', 'P100001', '--environment', 'sandbox'];
const temporal = testTemporal();
let ops: OpsUnderTest;
let receiver: WebhookReceiver;
let worker: TestWorker;

beforeAll(async () => {
  ops = await createOpsUnderTest();
  receiver = await startWebhookReceiver();
  await ops.json('partners', 'create', '--name', 'Example', '--id', 'P100001');
  worker = await startTestWorker({
    databaseUrl: ops.url,
    temporal,
    taskQueue: randomTaskQueue(),
    receiver,
    keys: ops.webhookKeys ?? '',
    environment: { DELIVERY_LADDER_SECONDS: '0,600,1' },
  });
  await worker.ready();
}, 300_000);
afterAll(async () => {
  await worker?.close();
  await receiver?.close();
  await ops?.close();
});
beforeEach(() => {
  receiver.received.length = 0;
  receiver.behave(() => 200);
});
afterEach(() => setServiceClock(ops.database, null));

const register = async (): Promise<string> => {
  const wanted = { partnerId: 'P100001', url: receiver.url, keyRing: ops.webhookKeys ?? '' };
  return (await addEndpoint(ops.database, wanted)).secret;
};
const rotate = async (overlap: string): Promise<string> =>
  (await ops.json('webhooks', 'secrets', 'rotate', ...PARTNER, '--overlap', overlap)).secret;
type Arrived = readonly { readonly request: Received }[];
/** Those that a receiver with this secret does not treat so. */
const otherwise = (arrived: Arrived, secret: string, verdict: 'accepts' | 'refuses') =>
  arrived.filter(({ request }) => judgeSignatures(request, secret) !== verdict);

test('while traffic flows, receivers with the old and with the new secret accept all of the overlap, then only the new', async () => {
  const old = await register();
  const traffic = startTraffic(ops.database, receiver, ['P100001']);
  await traffic.during('before', 20);
  await traffic.enter('rotating');
  const next = await rotate('24h');
  await traffic.during('overlap', 30);
  await advanceServiceClock(ops.database, 23.9 * 3_600);
  await traffic.during('late in the overlap', 20);
  await traffic.enter('ending');
  await advanceServiceClock(ops.database, 24.1 * 3_600);
  await traffic.during('after', 20);
  const stored = await traffic.stop();

  expect(receiver.received).toHaveLength(stored);
  // What was stored while the secrets changed went out under the one set or the other.
  for (const phase of ['before', 'rotating', 'overlap', 'late in the overlap'])
    expect([phase, otherwise(traffic.of(phase), old, 'accepts')]).toEqual([phase, []]);
  for (const phase of ['overlap', 'late in the overlap', 'ending', 'after'])
    expect([phase, otherwise(traffic.of(phase), next, 'accepts')]).toEqual([phase, []]);
  expect(otherwise(traffic.of('before'), next, 'refuses')).toEqual([]);
  expect(otherwise(traffic.of('after'), old, 'refuses')).toEqual([]);
}, 120_000);

test('in an emergency the old secret signs nothing that begins after the rotation, ladders in flight neither', async () => {
  const leaked = await register();
  const climbing: string[] = [];
  const notifications: string[] = [];
  const SEQUENCE = 7;
  receiver.behave((_nth, { body }) => (JSON.parse(body).sequence === SEQUENCE ? 503 : 200));
  for (let nth = 0; nth < 12; nth += 1) {
    const stored = await storeStatus(ops.database, { partnerId: 'P100001', sequence: SEQUENCE });
    climbing.push(stored.eventId);
    notifications.push(stored.notificationId);
  }
  const tries = (id: string) => receiver.received.filter(({ headers }) => headers['webhook-id'] === id);
  const traffic = startTraffic(ops.database, receiver, ['P100001']);
  await until(() => climbing.every((id) => tries(id).length > 0), 'the first attempt of each');
  await traffic.during('before', 10);
  await traffic.enter('rotating');
  const alone = await rotate('0');
  receiver.behave(() => 200);
  await traffic.during('after', 20);
  await traffic.stop();
  for (const id of notifications)
    await temporal.env.client.workflow.getHandle(deliveryWorkflowId(id, 1)).signal(DELIVERY_SIGNALS.retryNow);
  await until(() => climbing.every((id) => tries(id).length > 1), 'the next attempt of each', 30_000);

  expect(otherwise(traffic.of('after'), alone, 'accepts')).toEqual([]);
  expect(otherwise(traffic.of('after'), leaked, 'refuses')).toEqual([]);
  for (const { request } of [...traffic.of('before'), ...traffic.of('rotating')])
    expect([leaked, alone].filter((secret) => judgeSignatures(request, secret) === 'accepts')).toHaveLength(
      1,
    );
  for (const id of climbing) {
    const [first, ...later] = tries(id);
    if (first === undefined) throw new Error(`${id} never arrived`);
    expect(judgeSignatures(first, leaked)).toBe('accepts');
    for (const request of later) {
      expect(judgeSignatures(request, alone)).toBe('accepts');
      expect(judgeSignatures(request, leaked)).toBe('refuses');
    }
  }
}, 120_000);

test('three secrets at most sign, and each of their receivers accepts', async () => {
  const secrets = [await register(), await rotate('7d'), await rotate('7d')];
  const refused = await ops.run(['webhooks', 'secrets', 'rotate', ...PARTNER]);
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('at most 3') });
  await storeStatus(ops.database, { partnerId: 'P100001' });
  await until(() => receiver.received.length === 1, 'the delivery');
  const [request] = receiver.received;
  if (request === undefined) throw new Error('nothing arrived');
  for (const secret of secrets) expect(judgeSignatures(request, secret)).toBe('accepts');
  const kinds = String(request.headers['webhook-signature']).replaceAll(/,\S+/g, '');
  expect(kinds).toBe('v1 v1 v1 v1a');
});
