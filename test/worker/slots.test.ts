import { createSendSlots, type SendSlots } from '../../worker/slots';
import { createEndpointSpeed, createFastPath, type EndpointSpeed } from '../../worker/fast-path';
import { SENDS_PER_ENDPOINT } from '../../domain/delivery-now';
import type { Tenant } from '../../domain/tenant';

const OF = { partnerId: 'P100001', environment: 'live' } as const;
const OTHER = { partnerId: 'P100002', environment: 'live' } as const;
/** Lets what has ended leave its slot. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('slots on the fast path', () => {
  function queue(slots = 2) {
    const clock = { now: 0, ownDelay: 0 };
    const fast = new Set(['P100001', 'P100002']);
    const speed: Pick<EndpointSpeed, 'of'> = {
      of: ({ partnerId }) => ({
        endpointId: `whe_${partnerId}`,
        pace: partnerId.startsWith('new') ? 'unknown' : fast.has(partnerId) ? 'fast' : 'slow',
      }),
    };
    const made = createFastPath({
      speed,
      slots,
      mostPerEndpoint: 20,
      monotonicMs: () => clock.now,
      ownDelayMs: () => clock.ownDelay,
    });
    const reserve = (notificationId: string, of: Tenant & { readonly waits?: boolean } = OF) =>
      made.reserve({ ...of, notificationId });
    return { ...made, reserve, clock, fast };
  }

  test('nobody enters without a reservation, nor twice with one', () => {
    const { reserve, enter, cancel } = queue();
    expect(enter('a')).toBeNull();
    reserve('a');
    expect(enter('a')).not.toBeNull();
    expect(enter('a')).toBeNull();
    reserve('b');
    cancel('b');
    expect(enter('b')).toBeNull();
  });

  test('a reservation that nobody comes for ends by itself', () => {
    const { reserve, enter, clock } = queue(1);
    reserve('a');
    clock.now = 4_999;
    expect(reserve('b')).toBe('no_slot');
    clock.now = 5_000;
    expect(reserve('b')).toBe('fast');
    expect(enter('a')).toBeNull();
  });

  test('an endpoint has sixteen; one that is fast has more, while all together have no more than half of the slots', async () => {
    const { reserve, enter, slotsOf, clock, fast } = queue(64);
    const [mine, other] = ['P100001/live', 'P100002/live'];
    const quickly = async (of: Tenant, answers: number) => {
      for (let nth = 0; nth < answers; nth += 1) {
        reserve('quick', of);
        const slot = enter('quick');
        await slot?.sending(async () => undefined);
        slot?.leave();
      }
    };
    expect([slotsOf(mine), slotsOf('P100003/live'), slotsOf('new/live')]).toEqual([16, 16, 16]);
    // Each quick answer earns one, up to the most, for two seconds.
    await quickly(OF, 3);
    expect([slotsOf(mine), slotsOf(other)]).toEqual([19, 16]);
    clock.now = 2_000;
    expect(slotsOf(mine)).toBe(16);
    for (const tenant of [OF, OTHER]) await quickly(tenant, 9);
    expect([slotsOf(mine), slotsOf(other)]).toEqual([20, 20]);
    const taken = Array.from({ length: 14 }, (_, nth) => {
      reserve(`n${nth}`);
      return enter(`n${nth}`);
    });
    // What it has itself does not count.
    expect([slotsOf(mine), slotsOf(other)]).toEqual([20, 18]);
    reserve('of the other', OTHER);
    for (let nth = 0; nth < 15; nth += 1) reserve(`other ${nth}`, OTHER);
    expect([slotsOf(mine), slotsOf(other)]).toEqual([16, 18]);
    clock.ownDelay = 51;
    expect(slotsOf(other)).toBe(16);
    clock.ownDelay = 0;
    fast.delete('P100002');
    expect(slotsOf(other)).toBe(16);
    void taken[0]?.sending(() => new Promise(() => undefined));
    clock.now = 3_500;
    expect(slotsOf(mine)).toBe(16);
  });
});

/** A clock that a test sets, and attempts that it ends. */
function stage(slots: number, random = () => 0) {
  let nowMs = 0;
  const onBusy = jest.fn();
  const sendSlots = createSendSlots({ slots, random, monotonicMs: () => nowMs, onBusy });
  return { sendSlots, onBusy, at: (ms: number) => void (nowMs = ms) };
}

/** Begins attempts that end when told. @returns how many found a place */
function hang(sendSlots: SendSlots, queue: string, wanted: number) {
  const ends: (() => void)[] = [];
  for (let nth = 0; nth < wanted; nth += 1)
    void sendSlots.run(queue, () => new Promise<void>((resolve) => ends.push(resolve)));
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

const waitOf = async (sendSlots: SendSlots, queue: string) => {
  const answer = await sendSlots.run(queue, async () => 'sent' as const);
  return answer === 'sent' ? answer : answer.waitMs;
};

it('gives an endpoint sixteen slots, and the seventeenth is told when to ask again', async () => {
  const { sendSlots, onBusy } = stage(400);
  const one = hang(sendSlots, 'P1/live', 20);
  expect(one.found).toBe(SENDS_PER_ENDPOINT);
  expect(onBusy).toHaveBeenCalledTimes(4);
  expect(sendSlots.underWay()).toEqual({ all: 16, most: 16 });
  expect(await waitOf(sendSlots, 'P1/live')).toBeGreaterThanOrEqual(1_000);
  expect(await waitOf(sendSlots, 'P1/sandbox')).toBe('sent');
});

it('keeps slots for others while thirty endpoints hang', async () => {
  const { sendSlots } = stage(400);
  const found = Array.from({ length: 30 }, (_, nth) => hang(sendSlots, `P${nth}/live`, 500).found);
  expect(found.slice(0, 20)).toEqual(Array<number>(20).fill(16));
  // Towards the end each gets a quarter of what is left.
  expect(found).toEqual(found.toSorted((a, b) => b - a));
  expect(found.at(-1)).toBeGreaterThanOrEqual(1);
  expect(await waitOf(sendSlots, 'P99/live')).toBe('sent');
});

it('spreads those who wait at the pace at which attempts end', async () => {
  const { sendSlots, at } = stage(400);
  const one = hang(sendSlots, 'P1/live', 16);
  // Fifteen have hung for 15 s; what waits may ask one after another, about a second apart.
  at(15_000);
  for (let ended = 0; ended < 15; ended += 1) {
    one.end();
    await settled();
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
  for (let nth = 0; nth < 20_000; nth += 1)
    longest = Math.max(longest, Number(await waitOf(sendSlots, 'P1/live')));
  expect(longest).toBeGreaterThan(600_000);
  expect(longest).toBeLessThanOrEqual(601_000);
});

test('starts for an endpoint that is slow are spread over a quarter of its time, and those for one that fails at once are not', () => {
  const ownDelay = { ms: 0 };
  const speed = createEndpointSpeed(
    async () => [],
    () => ownDelay.ms,
  );
  const apartAfter = (outcome: 'delivered' | 'failed', durationMs: number) => {
    speed.observe({ ...OF, endpointId: 'whe_1' }, { outcome, durationMs });
    return speed.apartMs('P100001/live') * SENDS_PER_ENDPOINT;
  };
  expect(speed.apartMs('P100001/live')).toBe(0);
  expect(apartAfter('failed', 15_000)).toBe(3_750);
  expect(apartAfter('delivered', 800)).toBe(200);
  expect(apartAfter('failed', 3)).toBe(0);
  expect(apartAfter('delivered', 499)).toBe(0);
  ownDelay.ms = 400;
  expect(apartAfter('delivered', 800)).toBe(0);
});

describe('while every slot of the process is taken', () => {
  const SLOTS = 400;
  /** Each by another endpoint, which has waited for 20 s for the only attempt that has ended. */
  async function full(random?: () => number) {
    const scene = stage(SLOTS, random);
    const attempts = Array.from({ length: SLOTS }, (_, nth) => hang(scene.sendSlots, `H${nth}/live`, 1));
    scene.at(20_000);
    for (const one of attempts) one.end();
    await settled();
    for (let nth = 0; nth < SLOTS; nth += 1) hang(scene.sendSlots, `H${nth}/live`, 1);
    expect(scene.sendSlots.underWay().all).toBe(SLOTS);
    return scene;
  }
  /** Those that may ask within each second, the most of them. */
  function mostInASecond(waits: readonly number[]): number {
    const bySecond = new Map<number, number>();
    for (const wait of waits) {
      const second = Math.floor(wait / 1_000);
      bySecond.set(second, (bySecond.get(second) ?? 0) + 1);
    }
    return Math.max(...bySecond.values());
  }
  /** 400 attempts of 20 s end at 20 a second; the queue may be asked for somewhat more often. */
  const PER_SECOND = 25;

  it.each([
    ['5,000 retries of one endpoint', (_nth: number) => 'P1/live'],
    ['10,000 retries of as many endpoints', (nth: number) => `P${nth}/live`],
  ])('spaces %s by the slots that become free', async (what, queueOf) => {
    const { sendSlots } = await full();
    const waits: number[] = [];
    for (let nth = 0; nth < (what.startsWith('10') ? 10_000 : 5_000); nth += 1)
      waits.push(Number(await waitOf(sendSlots, queueOf(nth))));
    const spaced = waits.filter((wait) => wait < 600_000);
    expect(spaced.length).toBeGreaterThanOrEqual(waits.length - 100);
    expect(mostInASecond(spaced)).toBeLessThanOrEqual(PER_SECOND);
  });

  it('does not let the backlog of one endpoint put off another', async () => {
    const { sendSlots } = await full();
    for (let nth = 0; nth < 5_000; nth += 1) await waitOf(sendSlots, 'P1/live');
    expect(await waitOf(sendSlots, 'P2/live')).toBeLessThan(2_000);
  });

  it('waits longer with every round of a delivery, up to a minute', async () => {
    const { sendSlots } = await full();
    const waits: number[] = [];
    for (const round of [1, 2, 3, 4, 5, 6, 7, 50]) {
      const answer = await sendSlots.run(`P${round}/live`, async () => 'sent' as const, { round });
      waits.push(answer === 'sent' ? 0 : Math.floor(answer.waitMs / 1_000));
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  });
});
