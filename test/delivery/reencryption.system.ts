import { randomBytes } from 'node:crypto';
import { createPartner } from '../../db/catalogue/partners';
import { useOps } from '../ops/run';
import { startTestWorker, until, type TestWorker } from '../support/delivery';
import { addEndpoint, storeStatus } from '../support/notifications';
import { randomTaskQueue, testTemporal } from '../support/temporal';
import { startTraffic } from '../support/traffic';
import { judgeSignatures, startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver';

const temporal = testTemporal();
const [oldKey, newKey] = ['old', 'new'].map((id) => `${id}:${randomBytes(32).toString('base64')}`);
const PARTNERS = Array.from({ length: 8 }, (_, nth) => `P10000${nth}`);
let receiver: WebhookReceiver;
const workers: TestWorker[] = [];
const secrets = new Map<string, string>();

// Before the database is dropped.
afterAll(async () => {
  await Promise.all(workers.map((one) => one.close()));
  await receiver?.close();
});
const ops = useOps();
beforeAll(async () => {
  receiver = await startWebhookReceiver();
  for (const partnerId of PARTNERS) {
    await createPartner(ops.database.db, { partnerId, name: 'Example' });
    await register(partnerId);
  }
  // Three batches of secrets, most of them of endpoints that were replaced.
  for (let nth = 0; nth < 240; nth += 1) await register(PARTNERS[nth % PARTNERS.length] ?? '');
}, 300_000);

async function register(partnerId: string): Promise<void> {
  const wanted = { partnerId, url: receiver.url, keyRing: oldKey ?? '' };
  secrets.set(partnerId, (await addEndpoint(ops.database, wanted)).secret);
}

const taskQueue = randomTaskQueue();
async function startWorkerWith(...keys: (string | undefined)[]): Promise<TestWorker> {
  const worker = await startTestWorker({
    databaseUrl: ops.database.url,
    temporal,
    taskQueue,
    receiver,
    keys: keys.join(','),
  });
  workers.push(worker);
  await worker.ready();
  return worker;
}

const sealedWith = async () =>
  (
    await ops.database.sql`
      select key_id, count(*)::int as count
      from (select key_id from webhook_secrets union all select key_id from webhook_key_pairs) sealed
      group by 1 order by 1`
  ).map((row) => [row['key_id'], row['count']]);

test('secrets are sealed anew while deliveries run: none fails, all verify, and the old key can go', async () => {
  const traffic = startTraffic(ops.database, receiver, PARTNERS);
  // As the operations page has it: behind the old key everywhere, then in front, then reencrypt.
  const first = await startWorkerWith(oldKey, newKey);
  await traffic.during('both keys, the old one in front', 40);
  const second = await startWorkerWith(newKey, oldKey);
  ops.webhookKeys = `${newKey},${oldKey}`;
  await traffic.enter('reencrypting');
  const rotated = PARTNERS[3] ?? '';
  const [report, rotation] = await Promise.all([
    ops.json('secrets', 'reencrypt'),
    ops.json(
      'webhooks',
      'secrets',
      'rotate',
      '--partner',
      rotated,
      '--environment',
      'sandbox',
      '--overlap',
      '7d',
    ),
  ]);
  // A private key of each partner, too.
  expect(report.found).toBeGreaterThanOrEqual(256);
  expect(report.resealed).toBe(report.found);
  await traffic.during('reencrypted', 60);
  expect(await sealedWith()).toEqual([['new', 257]]);
  expect(await ops.json('secrets', 'reencrypt', '--dry-run')).toMatchObject({ found: 0 });

  await traffic.enter('restarting');
  await Promise.all([first.close(), second.close()]);
  workers.length = 0;
  await startWorkerWith(newKey);
  await traffic.during('the new key alone', 40);
  const stored = await traffic.stop();
  expect(receiver.received).toHaveLength(stored);
  const phases = [
    'before',
    'both keys, the old one in front',
    'reencrypting',
    'reencrypted',
    'restarting',
    'the new key alone',
  ];
  const arrived = phases.flatMap((phase) => traffic.of(phase));
  expect(arrived).toHaveLength(stored);
  for (const { request, partnerId } of arrived)
    expect(judgeSignatures(request, secrets.get(partnerId) ?? '')).toBe('accepts');
  for (const { request } of traffic.of('reencrypted').filter((one) => one.partnerId === rotated))
    expect(judgeSignatures(request, rotation.secret)).toBe('accepts');
  await until(
    async () =>
      (await ops.database.sql`select 1 from notifications_now where state <> 'delivered'`).length === 0,
    'all are recorded',
  );
  const outcomes = await ops.database.sql`select distinct outcome from delivery_attempts`;
  expect(outcomes).toEqual([{ outcome: 'delivered' }]);
}, 240_000);

test('a worker that lacks the key makes no attempt, and one that has it delivers', async () => {
  await Promise.all(workers.splice(0).map((one) => one.close()));
  receiver.received.length = 0;
  const stranger = await startWorkerWith(`stranger:${randomBytes(32).toString('base64')}`);
  const [partnerId = ''] = PARTNERS;
  const { notificationId } = await storeStatus(ops.database, { partnerId });
  const complaints = () => stranger.logs.filter((line) => line.includes('is a key missing'));
  await until(() => complaints().length >= 3, 'three tries', 60_000);
  await stranger.close();
  workers.length = 0;
  const attempts = () => ops.database.sql`
    select attempt_number as number, outcome from delivery_attempts where notification_id = ${notificationId}`;
  expect(await attempts()).toEqual([]);
  expect(receiver.received).toHaveLength(0);

  await startWorkerWith(newKey);
  await until(async () => (await attempts())[0]?.['outcome'] === 'delivered', 'the delivery', 90_000);
  expect(await attempts()).toEqual([{ number: 1, outcome: 'delivered' }]);
  expect(receiver.received).toHaveLength(1);
}, 240_000);
