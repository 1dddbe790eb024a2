import { listProcesses } from '../../db/processes';
import { until } from '../../testbed/until';
import { addEndpoint, newKeyRingText, standingOf, storeStatus } from '../../testbed/notifications';
import { startTestWorker } from '../support/delivery';
import { useWorkers } from '../support/service';
import { testTemporal } from '../support/temporal';

const temporal = testTemporal();
const { database, keys: ring, newPartner, receiver, start, stop, taskQueue, workers } = useWorkers(temporal);

test('a worker that lacks the key makes no attempt, and one that has it delivers', async () => {
  const stranger = await start({ WEBHOOK_KEYS: newKeyRingText() });
  const partnerId = await newPartner();
  const { notificationId } = await storeStatus(database, { partnerId });
  const complaints = () => stranger.logs.filter((line) => line.includes('is a key missing'));
  await until(() => complaints().length >= 3, 'three tries');
  await stop();
  const attempts = async () => (await standingOf(database, notificationId)).attempts;
  expect(await attempts()).toEqual([]);
  expect(receiver.received).toHaveLength(0);

  await start();
  await until(async () => (await attempts())[0] === 'delivered', 'the delivery', 90_000);
  expect(await attempts()).toEqual(['delivered']);
  expect(receiver.received).toHaveLength(1);

  // Where there are endpoints it does not get ready, so that a release with it stops.
  const keys = newKeyRingText();
  const late = await startTestWorker({ databaseUrl: database.url, temporal, taskQueue, receiver, keys });
  workers.push(late);
  await expect(late.worker.checkReady()).rejects.toThrow(/^WEBHOOK_KEYS: .*replaced under the same id/);
  expect(late.logs.filter((line) => line.includes('not ready: WEBHOOK_KEYS'))).toHaveLength(1);
  const said = async () => (await listProcesses(database.db)).map(({ trouble }) => trouble);
  await until(
    async () => (await said()).some((one) => one?.startsWith('WEBHOOK_KEYS: ')),
    'its beat says why',
  );
  // One damaged secret among others says nothing of the key.
  await newPartner();
  await database.sql`update webhook_secrets set ciphertext = ${Buffer.alloc(40)} where endpoint_id in (
    select endpoint_id from webhook_endpoints where partner_id = ${partnerId})`;
  await stop();
  // A key that ops alone has: who runs goes on, and says so.
  const { worker } = await start();
  const next = newKeyRingText().replace('test:', 'next:');
  await addEndpoint(database, { partnerId, url: receiver.url, keyRing: `${next},${ring}` });
  await until(
    async () => (await said()).includes('WEBHOOK_KEYS: key ring: there is no key with the id next'),
    'its beat says why',
    60_000,
  );
  await worker.checkReady();
}, 240_000);
