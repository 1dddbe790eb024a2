import { createPartner } from '../../db/catalogue/partners';
import { useDatabase } from '../support/database';
import { until } from '../support/delivery';
import { addEndpoint, newKeyRingText, storeStatus } from '../support/notifications';
import { randomTaskQueue, testTemporal } from '../support/temporal';
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process';

const MEBIBYTE = 1024 ** 2;
const PARTNERS = ['P100001', 'P100002', 'P100003', 'P100004'];
const CHUNK = Buffer.alloc(65_536, 'x');

const temporal = testTemporal();
let receiver: WebhookReceiver;
let worker: WorkerProcess;
// Before the database is dropped.
afterAll(async () => {
  await worker?.close();
  await receiver?.close();
});
const database = useDatabase({ statementTimeoutMs: 0 });

beforeAll(async () => {
  receiver = await startWebhookReceiver(() => (response) => {
    const more = () => {
      while (!response.destroyed && response.write(CHUNK));
    };
    response.writeHead(200).on('drain', more);
    more();
  });
  const keys = newKeyRingText();
  for (const partnerId of PARTNERS) {
    await createPartner(database.db, { partnerId, name: 'Example' });
    await addEndpoint(database, { partnerId, url: receiver.url, keyRing: keys });
  }
  worker = await startWorkerProcess({
    databaseUrl: database.url,
    temporal,
    taskQueue: randomTaskQueue('memory'),
    receiver,
    keys,
    // A small heap, so that what is garbage does not count as kept.
    environment: { NODE_OPTIONS: '--max-old-space-size=96' },
  });
  await worker.ready();
}, 300_000);

const residentBytes = async () =>
  Number(/^process_resident_memory_bytes (\d+)$/m.exec(await worker.metrics())?.[1]);

/** So many deliveries to each partner, at once. @returns the most memory seen. */
async function deliver(toEach: number): Promise<number> {
  for (const partnerId of PARTNERS)
    await Promise.all(Array.from({ length: toEach }, () => storeStatus(database, { partnerId })));
  let most = 0;
  const open = () =>
    database.sql`select 1 from notifications_now where state in ('queued', 'started') limit 1`;
  const ended = async () => {
    most = Math.max(most, await residentBytes());
    return (await open()).length === 0;
  };
  await until(ended, 'the end of every notification', 180_000);
  return most;
}

test('a worker whose every delivery is answered with an endless body keeps its memory flat', async () => {
  // What the process needs to do this at all, buffers and compiled code, it has after these.
  await deliver(30);
  const before = await residentBytes();
  const most = await deliver(75);
  const mebibytes = [before, most, await residentBytes()].map((bytes) => Math.round(bytes / MEBIBYTE));
  console.log(`resident MiB before, at most and after 300 endless bodies: ${mebibytes.join(', ')}`);
  // An attempt that a busy machine did not get to in time is made again.
  const states = await database.sql`select state, count(*)::int from notifications_now group by 1`;
  expect(states).toEqual([{ state: 'delivered', count: 420 }]);
  const taken = await database.sql`select count(*)::int from delivery_attempts where outcome = 'delivered'`;
  expect(taken).toEqual([{ count: 420 }]);
  // One endless body read for the 5 s that its end is waited for would be hundreds.
  expect(most - before).toBeLessThan(80 * MEBIBYTE);
}, 300_000);
