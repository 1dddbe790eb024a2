import { useCrashScene } from '../support/crash-scene';
import { until } from '../../testbed/until';
import type { Standing } from '../../testbed/notifications';
import { testTemporal } from '../support/temporal';

/** Fault row 136: a worker that queues belong to is frozen or killed, and twelve become four. */
const temporal = testTemporal();
const scene = useCrashScene(() => ({ temporal, others: OTHERS }));
const OTHERS = Array.from({ length: 11 }, (_, nth) => `P1001${nth + 10}`);
const partners = () => [scene.partnerId, ...OTHERS];

/** Workers that have shared the queues among themselves. */
async function workers(count: number) {
  const all = await Promise.all(Array.from({ length: count }, () => scene.worker({}, 'either')));
  await Promise.all(all.map((worker) => worker.ready(120_000)));
  await until(async () => {
    const [row] = await scene.database.sql<{ seats: number }[]>`
        select count(distinct seat)::int as seats from processes
        where seat is not null and stopped_at is null and seen_at > service_now() - interval '25 s'`;
    return row?.seats === count;
  }, 'each has a seat').catch(async (error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(await scene.database.sql`select * from processes`)}`);
  });
  // A sweep.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  return all;
}

/** One event for each partner. @returns them once they have ended */
async function storeForEach(): Promise<Standing[]> {
  for (const partnerId of partners()) await scene.storeTest(partnerId);
  // A worker counts as lost after 25 s, and an attempt that it had begun is repeated after ten.
  return scene.ended(20_000);
}

test.each([
  ['is frozen', 'SIGSTOP', 3, 1],
  ['is killed, as are two more of four,', 'SIGKILL', 4, 3],
] as const)(
  'the queues of a worker that %s are claimed by others before it counts as lost',
  async (_what, signal, count, gone) => {
    const all = await workers(count);
    for (const victim of all.slice(0, gone)) victim.child.kill(signal);
    const rows = await storeForEach();
    expect(rows.map(({ state }) => state)).toEqual(partners().map(() => 'delivered'));
    const events = scene.receiver.received.map(({ eventId }) => eventId);
    expect([events.length, new Set(events).size]).toEqual([partners().length, partners().length]);
    for (const worker of all) {
      worker.child.kill('SIGCONT');
      await worker.end('SIGKILL').catch(() => undefined);
    }
    await scene.expectInvariants({ kills: gone });
  },
  300_000,
);
