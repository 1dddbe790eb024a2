import { createSendSlots, type SendSlots } from '../../activities';
import { SENDS_PER_ENDPOINT } from '../../domain/delivery-now';

/** A clock that a test sets, and attempts that it ends. */
function stage(slots: number, random = () => 0) {
  let nowMs = 0;
  let refusals = 0;
  const sendSlots = createSendSlots({
    slots,
    random,
    monotonicMs: () => nowMs,
    onBusy: () => (refusals += 1),
  });
  return {
    sendSlots,
    at: (ms: number) => void (nowMs = ms),
    refusals: () => refusals,
  };
}

/** Begins attempts that end when told. @returns how many found a place */
function hang(sendSlots: SendSlots, queue: string, wanted: number) {
  const ends: (() => void)[] = [];
  for (let nth = 0; nth < wanted; nth += 1) {
    void sendSlots.run(queue, () => new Promise<void>((resolve) => ends.push(resolve)));
  }
  return {
    found: ends.length,
    /** Ends one of them; false when none is left. */
    end() {
      const end = ends.pop();
      end?.();
      return end !== undefined;
    },
  };
}

/** Lets what has ended leave its place. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

const waitOf = async (sendSlots: SendSlots, queue: string) => {
  const answer = await sendSlots.run(queue, async () => 'sent' as const);
  return answer === 'sent' ? answer : answer.waitMs;
};

it('gives an endpoint sixteen slots, and the seventeenth is told when to ask again', async () => {
  const { sendSlots, refusals } = stage(400);
  const one = hang(sendSlots, 'P1/live', 20);
  expect(one.found).toBe(SENDS_PER_ENDPOINT);
  expect(refusals()).toBe(4);
  expect(sendSlots.underWay()).toEqual({ all: 16, most: 16 });
  expect(await waitOf(sendSlots, 'P1/live')).toBeGreaterThanOrEqual(1_000);
  expect(await waitOf(sendSlots, 'P1/sandbox')).toBe('sent');
});

it('gives the place on when an attempt ends, however it ends', async () => {
  const { sendSlots } = stage(400);
  const one = hang(sendSlots, 'P1/live', 16);
  one.end();
  await turn();
  await expect(sendSlots.run('P1/live', () => Promise.reject(new Error('no database')))).rejects.toThrow(
    'no database',
  );
  expect(await waitOf(sendSlots, 'P1/live')).toBe('sent');
  expect(sendSlots.underWay().all).toBe(15);
});

it('keeps slots for others while thirty endpoints hang', async () => {
  const { sendSlots } = stage(400);
  const found: number[] = [];
  for (let endpoint = 0; endpoint < 30; endpoint += 1) {
    found.push(hang(sendSlots, `P${endpoint}/live`, 500).found);
  }
  expect(found.slice(0, 20)).toEqual(Array<number>(20).fill(16));
  // Towards the end each gets a quarter of what is left.
  expect(found).toEqual(found.toSorted((a, b) => b - a));
  expect(found.at(-1)).toBeGreaterThanOrEqual(1);
  expect(await waitOf(sendSlots, 'P99/live')).toBe('sent');
});

it('comes to even shares with slots to spare, when so many hang that all were taken', async () => {
  const { sendSlots } = stage(400);
  const endpoints = Array.from({ length: 100 }, (_, nth) => ({
    queue: `P${nth}/live`,
    hanging: [hang(sendSlots, '', 0)],
  }));
  for (let round = 0; round < 20; round += 1) {
    for (const { queue, hanging } of endpoints) {
      // The oldest attempt times out, and everybody who waits asks.
      hanging.some((one) => one.end());
      await turn();
      hanging.push(hang(sendSlots, queue, 20));
    }
  }
  expect(sendSlots.underWay().most).toBeLessThanOrEqual(5);
  expect(sendSlots.underWay().all).toBeLessThanOrEqual(390);
  expect(await waitOf(sendSlots, 'Q1/live')).toBe('sent');
});

it('never has more under way than there are slots', () => {
  const { sendSlots } = stage(10);
  for (let endpoint = 0; endpoint < 50; endpoint += 1) hang(sendSlots, `P${endpoint}/live`, 3);
  expect(sendSlots.underWay().all).toBe(10);
});

it('spreads those who wait at the pace at which attempts end', async () => {
  const { sendSlots, at } = stage(400);
  const one = hang(sendSlots, 'P1/live', 16);
  // Fifteen have hung for 15 s; what waits may ask one after another, about a second apart.
  at(15_000);
  for (let ended = 0; ended < 15; ended += 1) {
    one.end();
    await turn();
  }
  hang(sendSlots, 'P1/live', 15);
  const waits: number[] = [];
  for (let nth = 0; nth < 500; nth += 1) waits.push(Number(await waitOf(sendSlots, 'P1/live')));
  const spacing = waits.slice(1).map((wait, nth) => wait - (waits[nth] ?? 0));
  expect(Math.min(...spacing.slice(0, 400))).toBeGreaterThan(700);
  expect(Math.max(...spacing)).toBeLessThan(1_000);
  expect(waits[0]).toBeGreaterThanOrEqual(1_000);
  expect(waits.at(-1)).toBeGreaterThan(400_000);
});

it('lets nobody sleep for more than ten minutes and a jitter of a second', async () => {
  const { sendSlots } = stage(400, () => 0.999);
  hang(sendSlots, 'P1/live', 16);
  let longest = 0;
  for (let nth = 0; nth < 20_000; nth += 1) {
    longest = Math.max(longest, Number(await waitOf(sendSlots, 'P1/live')));
  }
  expect(longest).toBeGreaterThan(600_000);
  expect(longest).toBeLessThanOrEqual(601_000);
});
