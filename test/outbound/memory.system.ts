import { useCrashScene } from '../support/crash-scene';
import { until } from '../../testbed/until';
import { metricIn } from '../../testbed/http-call';
import { storeStatus } from '../../testbed/notifications';
import { testTemporal } from '../support/temporal';
import { flood } from './partner';

const MEBIBYTE = 1024 ** 2;
const OTHERS = ['P100002', 'P100003', 'P100004'];
const CHUNK = Buffer.alloc(65_536, 'x');

const temporal = testTemporal();
const scene = useCrashScene(() => ({ temporal }));

test('a worker whose every delivery is answered with an endless body keeps its memory flat', async () => {
  for (const partnerId of OTHERS) await scene.addPartner(partnerId);
  scene.receiver.behave(() => (response) => void flood(response.writeHead(200), CHUNK));
  // A small heap, so that what is garbage does not count as kept.
  const worker = await scene.worker({ NODE_OPTIONS: '--max-old-space-size=96' });
  await worker.ready();
  const residentBytes = async () => metricIn(await worker.metrics(), 'process_resident_memory_bytes');
  const { sql } = scene.database;
  /** So many deliveries to each partner, at once. @returns the most memory seen. */
  const deliver = async (toEach: number) => {
    for (const partnerId of [scene.partnerId, ...OTHERS])
      await Promise.all(Array.from({ length: toEach }, () => storeStatus(scene.database, { partnerId })));
    let most = 0;
    const ended = async () => {
      most = Math.max(most, await residentBytes());
      return (await sql`select 1 from deliveries limit 1`).length === 0;
    };
    await until(ended, 'the end of every notification', 180_000);
    return most;
  };

  // What the process needs to do this at all, buffers and compiled code, it has after these.
  await deliver(20);
  const before = await residentBytes();
  const most = await deliver(35);
  const mebibytes = [before, most, await residentBytes()].map((bytes) => Math.round(bytes / MEBIBYTE));
  console.log(`resident MiB before, at most and after 140 endless bodies: ${mebibytes.join(', ')}`);
  // An attempt that a busy machine did not get to in time is made again.
  const states = await sql`select state, count(*)::int from notifications_now group by 1`;
  expect(states).toEqual([{ state: 'delivered', count: 220 }]);
  const taken = await sql`select count(*)::int from delivery_attempts where outcome = 'delivered'`;
  expect(taken).toEqual([{ count: 220 }]);
  // One endless body read for the 5 s that its end is waited for would be hundreds.
  expect(most - before).toBeLessThan(80 * MEBIBYTE);
}, 300_000);
