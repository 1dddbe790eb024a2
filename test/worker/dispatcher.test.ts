import type { Claim, ClaimedNotification } from '../../db/notifications/claim';
import { createClaimPace, startDispatcher } from '../../worker/dispatcher';
import { until } from '../support/delivery';

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
const NOTHING: Claim = { claimed: [], waiting: false, contended: false, turn: null };

type Deps = Parameters<typeof startDispatcher>[0];
/** A dispatcher of which all else does nothing. */
const dispatcherOf = (deps: Pick<Deps, 'claim' | 'start' | 'sweepMs'> & Partial<Deps>) =>
  startDispatcher({
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

describe('the pace of claims', () => {
  let nowMs = 0;
  const newPace = () => createClaimPace(() => nowMs);
  beforeEach(() => (nowMs = 0));

  test('some short claims in a row need no rest', () => {
    const pace = newPace();
    for (let nth = 0; nth < 10; nth += 1) {
      nowMs += 2;
      pace.spent(2);
      expect(pace.restMs(0)).toBe(0);
    }
  });

  test('claims that follow one another take a quarter of the time in the long run', () => {
    const pace = newPace();
    let claims = 0;
    while (nowMs < 10_000) {
      nowMs += 5;
      claims += 1;
      pace.spent(5);
      nowMs += pace.restMs(0);
    }
    expect((claims * 5) / nowMs).toBeCloseTo(0.25, 1);
  });

  test('a rest is no longer than 50 ms however slow a claim was, and after a quiet second there is none', () => {
    const pace = newPace();
    pace.spent(5_000);
    expect(pace.restMs(0)).toBe(50);
    nowMs += 1_000;
    pace.spent(15);
    expect(pace.restMs(0)).toBe(0);
  });

  test('while four workflows are being started, claims are 40 ms apart', () => {
    const pace = newPace();
    expect(pace.restMs(4)).toBe(0);
    pace.spent(2);
    expect([pace.restMs(3), pace.restMs(4)]).toEqual([0, 40]);
    nowMs += 30;
    expect([pace.restMs(3), pace.restMs(64)]).toEqual([0, 10]);
    nowMs += 10;
    expect(pace.restMs(64)).toBe(0);
  });
});
