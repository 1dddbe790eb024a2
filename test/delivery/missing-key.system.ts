import { until } from '../../testbed/until';
import { newKeyRingText, standingOf, storeStatus } from '../../testbed/notifications';
import { useWorkers } from '../support/service';

const { database, newPartner, receiver, start, stop } = useWorkers();

test('a worker that lacks the key makes no attempt, and one that has it delivers', async () => {
  const partnerId = await newPartner();
  const stranger = await start({ WEBHOOK_KEYS: newKeyRingText() });
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
}, 240_000);
