import type { Claim, ClaimedNotification, ClaimOptions, Sweep } from '../../db/notifications/claim';
import { startDispatcher } from '../../worker/dispatcher';
import { createStartLimit } from '../../worker/pace';
import { until } from '../../testbed/until';

const one = (notificationId: string): ClaimedNotification => ({
  notificationId,
  generation: 1,
  eventType: 'credit_application.accepted',
  partnerId: 'P100001',
  environment: 'live',
  applicationId: null,
  requestId: null,
  traceParent: null,
  ageMs: 0,
});
const NOTHING: Claim = { claimed: [], remaining: [] };
const QUEUE = 'P100001/live';
const sweepOf = (...queues: string[]): Sweep => ({
  due: queues.map((queue) => ({ queue, dueForMs: 0 })),
  complete: true,
  after: '',
});

type Deps = Parameters<typeof startDispatcher>[0];
/** A dispatcher of which all else does nothing. */
const dispatcherOf = (deps: Pick<Deps, 'claim' | 'start' | 'sweepMs'> & Partial<Deps>) =>
  startDispatcher({
    sweep: async () => sweepOf(QUEUE),
    isMine: () => true,
    apartMs: () => 0,
    enabled: () => true,
    room: () => Number.POSITIVE_INFINITY,
    markStarted: async () => undefined,
    giveBack: async () => undefined,
    onStarted: () => undefined,
    onError: () => undefined,
    monotonicMs: () => performance.now(),
    batch: 64,
    ...deps,
  });

test('started deliveries are written down, but for those not started and those whose attempt has ended', async () => {
  const claimed = ['failed', 'ended early', 'ended', 'started'].map(one);
  const writes: string[][] = [];
  let claims = 0;
  const dispatcher = dispatcherOf({
    claim: async () => ((claims += 1) === 1 ? { ...NOTHING, claimed } : NOTHING),
    markStarted: async (started) => void writes.push(started.map(({ notificationId }) => notificationId)),
    start: async ({ notificationId }) => {
      await Promise.resolve();
      if (notificationId === 'failed') throw new Error('Temporal is away');
      // Before its start is answered.
      if (notificationId === 'ended early') dispatcher.attemptEnded(notificationId);
    },
    sweepMs: 10,
  });
  await until(() => claims > 1, 'the next claim');
  dispatcher.attemptEnded('ended');
  await dispatcher.stop();
  expect(writes).toEqual([['started']]);
});

test('a start that fails is given back, and claimed again after a second although the sweep is a minute away', async () => {
  const given: [string, number][] = [];
  const claimedAtMs: number[] = [];
  const dispatcher = dispatcherOf({
    claim: async () =>
      claimedAtMs.push(performance.now()) === 1 ? { ...NOTHING, claimed: [one('a')] } : NOTHING,
    giveBack: async (failed, pauseMs) =>
      void given.push(...failed.map(({ notificationId }): [string, number] => [notificationId, pauseMs])),
    start: () => Promise.reject(new Error('Temporal is away')),
    sweepMs: 60_000,
  });
  await until(() => claimedAtMs.length > 1, 'it is claimed again');
  await dispatcher.stop();
  expect(given).toEqual([['a', 1_000]]);
  const [first = 0, second = 0] = claimedAtMs;
  expect(second - first).toBeGreaterThan(900);
});

describe('which queues are claimed', () => {
  type Asked = Pick<ClaimOptions, 'queues' | 'graceMs'>;
  /** A dispatcher that owns `a…`, and what it asked for. */
  function dispatcher(
    answer: (asked: Asked & Pick<ClaimOptions, 'limit'>) => Claim,
    deps: Partial<Deps> & { readonly sweeps?: readonly Sweep[] } = {},
  ) {
    const asked: Asked[] = [];
    const sweeps = [...(deps.sweeps ?? [])];
    const made = dispatcherOf({
      claim: async ({ queues, graceMs, limit }) => {
        asked.push({ queues, graceMs });
        return answer({ queues, graceMs, limit });
      },
      sweep: async () => sweeps.shift() ?? sweepOf(),
      isMine: (queue) => queue.startsWith('a'),
      start: async () => undefined,
      sweepMs: 60_000,
      ...deps,
    });
    return { ...made, asked };
  }
  const turns = (count: number) => new Promise((resolve) => setTimeout(resolve, 10 * count));

  test('a hint of its own queue is claimed at once, one of another worker is not', async () => {
    const { hear, stop, asked } = dispatcher(() => NOTHING);
    await turns(1);
    hear('b/live');
    hear('a/live');
    await until(() => asked.length > 0, 'a claim');
    await turns(3);
    expect(asked).toEqual([{ queues: ['a/live'], graceMs: 0 }]);
    await stop();
  });

  test('a queue of another worker is claimed when it has been due for a second, and only what has been', async () => {
    const due = [
      { queue: 'b/live', dueForMs: 999 },
      { queue: 'c/live', dueForMs: 1_000 },
    ];
    const { stop, asked } = dispatcher(() => NOTHING, { sweeps: [{ due, complete: true, after: '' }] });
    await until(() => asked.length > 0, 'a claim');
    await turns(3);
    expect(asked).toEqual([{ queues: ['c/live'], graceMs: 1_000 }]);
    await stop();
  });

  test('a queue in which everything waits is claimed again when one of its attempts has ended, and not before', async () => {
    let claims = 0;
    const { hear, attemptEnded, stop, asked } = dispatcher(() => {
      claims += 1;
      return claims === 1
        ? { claimed: [{ ...one('first'), partnerId: 'a' }], remaining: [{ queue: 'a/live', why: 'waits' }] }
        : NOTHING;
    });
    await turns(1);
    hear('a/live');
    await until(() => asked.length === 1, 'the first claim');
    attemptEnded('of another queue');
    await turns(5);
    expect(asked).toHaveLength(1);
    attemptEnded('first');
    await until(() => asked.length === 2, 'the second');
    await stop();
  });

  test('no more is claimed than there is room for, and the rest when there is again, though the sweep is a minute away', async () => {
    const limits: number[] = [];
    let room = 2;
    const dispatcher = dispatcherOf({
      claim: async ({ limit }) => {
        limits.push(limit);
        room = limits.length === 1 ? 0 : 64;
        return limits.length === 1
          ? { claimed: [one('a')], remaining: [{ queue: QUEUE, why: 'more' }] }
          : NOTHING;
      },
      room: () => room,
      start: async () => undefined,
      sweepMs: 60_000,
    });
    await until(() => limits.length === 1, 'the first claim');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(limits).toEqual([2]);
    room = 7;
    await until(() => limits.length === 2, 'the next one');
    await dispatcher.stop();
    expect(limits).toEqual([2, 7]);
  });

  test('those for a slow endpoint start one by one, apart, and hold up nobody else', async () => {
    const claimedMs: number[] = [];
    const { hear, stop, asked } = dispatcher(
      ({ queues, limit }) => {
        if (!queues.includes('a-slow/live')) return NOTHING;
        expect({ queues, limit }).toEqual({ queues: ['a-slow/live'], limit: 1 });
        return {
          ...NOTHING,
          remaining: claimedMs.push(performance.now()) < 4 ? [{ queue: 'a-slow/live', why: 'more' }] : [],
        };
      },
      { apartMs: (queue) => (queue === 'a-slow/live' ? 60 : 0) },
    );
    await turns(1);
    hear('a-slow/live');
    await until(() => claimedMs.length === 1, 'the first');
    hear('a/live');
    hear('a-slow/live');
    await until(() => claimedMs.length === 4, 'the others');
    await stop();
    expect(asked.slice(0, 2).map(({ queues }) => queues)).toEqual([['a-slow/live'], ['a/live']]);
    const gaps = claimedMs.slice(1).map((atMs, nth) => atMs - (claimedMs[nth] ?? atMs));
    expect(gaps.filter((gapMs) => gapMs < 59)).toEqual([]);
  });

  test('slow endpoints of which one is always due keep no queue of another worker waiting', async () => {
    const due = ['a-slow/live', 'c/live'].map((queue) => ({ queue, dueForMs: 1_000 }));
    const { stop, asked } = dispatcher(
      ({ queues }) => ({
        ...NOTHING,
        remaining: queues.includes('a-slow/live') ? [{ queue: 'a-slow/live', why: 'more' }] : [],
      }),
      { apartMs: () => 0.001, sweeps: [{ due, complete: true, after: '' }] },
    );
    await until(() => asked.length > 5, 'some claims');
    await stop();
    expect(asked.map(({ queues }) => queues)).toContainEqual(['c/live']);
  });

  test('nothing is claimed while deliveries start on another build', async () => {
    let enabled = false;
    let rounds = 0;
    const { hear, wake, stop, asked } = dispatcher(() => NOTHING, {
      enabled: () => (rounds++, enabled),
      apartMs: () => 1,
    });
    hear('a/live');
    await turns(5);
    expect(asked).toEqual([]);
    const waited = rounds;
    enabled = true;
    wake();
    await until(() => asked.length === 1, 'a claim');
    await stop();
    expect(waited).toBeLessThan(10);
  });
});

test('starts that are slow together halve how many may be under way, and quick ones add one after as many', () => {
  let nowMs = 0;
  const limit = createStartLimit(64, () => nowMs);
  const after = (tookMs: number, count: number) => {
    for (let nth = 0; nth < count; nth += 1) limit.ended(tookMs);
    return limit.most();
  };
  expect(after(40, 100)).toBe(64);
  expect(after(1_500, 50)).toBe(32);
  nowMs = 1_000;
  expect(after(600, 1)).toBe(16);
  expect(after(40, 17)).toBe(17);
  for (; nowMs < 10_000; nowMs += 1_000) limit.ended(1_500);
  expect(limit.most()).toBe(4);
  expect(after(40, 5_000)).toBe(64);
});

test('while Temporal is slow, fewer deliveries are claimed, and start', async () => {
  let nowMs = 0;
  const asked: number[] = [];
  const dispatcher = dispatcherOf({
    claim: async ({ limit }) => {
      asked.push(limit);
      const claimed = Array.from({ length: limit }, (_, nth) => one(`${asked.length}-${nth}`));
      return { claimed, remaining: [{ queue: QUEUE, why: 'more' }] };
    },
    start: async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      nowMs += 1_000;
    },
    monotonicMs: () => nowMs,
    sweepMs: 10,
  });
  await until(() => asked.length > 5, 'some claims');
  await dispatcher.stop();
  expect(asked[0]).toBe(64);
  expect(Math.max(...asked.slice(1))).toBeLessThan(5);
});

test('while Temporal refuses every start, one claim a second is made, however much is due', async () => {
  let claims = 0;
  const dispatcher = dispatcherOf({
    claim: async ({ limit }) => {
      claims += 1;
      const claimed = Array.from({ length: limit }, (_, nth) => one(`${claims}-${nth}`));
      return { claimed, remaining: [{ queue: QUEUE, why: 'more' }] };
    },
    start: async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      throw new Error('the namespace is gone');
    },
    sweepMs: 60_000,
  });
  await new Promise((resolve) => setTimeout(resolve, 500));
  await dispatcher.stop();
  expect(claims).toBe(1);
});
