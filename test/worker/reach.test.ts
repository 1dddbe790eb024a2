import type { DeliveryOutcome, SentWebhook } from '../../domain/delivery-outcome';
import { LONGEST_OUTAGE_MS } from '../../domain/our-outage';
import { createReach } from '../../worker/reach';

const TRY_EVERY_MS = 30_000;

/** A worker's view, on a clock that the test moves. */
function scene({ probe = null }: { probe?: (() => Promise<boolean>) | null } = {}) {
  let ms = 1_000_000;
  const story: string[] = [];
  const reach = createReach({
    probe,
    tryEveryMs: TRY_EVERY_MS,
    monotonicMs: () => ms,
    nowMs: () => ms,
    onBegin: ({ since }) => story.push(`begins ${since.getTime()}`),
    onEnd: () => story.push('ends'),
  });
  const sent = (outcome: DeliveryOutcome, nth: number): SentWebhook => ({
    outcome,
    answer: null,
    address: null,
    addresses: [`192.0.2.${nth}`],
    detail: null,
    clockSkewMs: null,
  });
  const of = (nth: number) => ({
    partnerId: `P${nth}`,
    environment: 'sandbox' as const,
    url: `https://hooks.p${nth}.test/`,
  });
  const outcomes = {
    fails: { kind: 'failed', failure: 'connect', httpStatus: null, durationMs: 1, retryAfterMs: null },
    'answers 500': {
      kind: 'failed',
      failure: 'http_status',
      httpStatus: 500,
      durationMs: 1,
      retryAfterMs: null,
    },
    delivers: { kind: 'delivered', httpStatus: 200, durationMs: 1 },
  } as const satisfies Record<string, DeliveryOutcome>;
  const attempt = async (nth: number, what: keyof typeof outcomes, takesMs = 0) => {
    const { outcome } = await reach.judged(of(nth), async () => {
      ms += takesMs;
      return sent(outcomes[what], nth);
    });
    ms += 10;
    return outcome.kind;
  };
  return {
    reach,
    story,
    attempt,
    of,
    pass: (more: number) => void (ms += more),
    /** Attempts to this many endpoints, from 0. */
    all: async (count: number, what: keyof typeof outcomes) => {
      const kinds = [];
      for (let nth = 0; nth < count; nth += 1) kinds.push(await attempt(nth, what));
      return kinds;
    },
    sentOf: sent,
  };
}

test('an attempt that began in an outage and fails after its end is ours', async () => {
  const { all, attempt, story, reach, of, sentOf } = scene();
  await all(12, 'fails');
  let fail: (sent: SentWebhook) => void = () => undefined;
  const late = reach.judged(of(3), () => new Promise((resolve) => (fail = resolve)));
  expect(await attempt(0, 'delivers')).toBe('delivered');
  expect(story.at(-1)).toBe('ends');
  fail(
    sentOf({ kind: 'failed', failure: 'timeout', httpStatus: null, durationMs: 1, retryAfterMs: null }, 3),
  );
  expect((await late).outcome).toMatchObject({ kind: 'ours', failure: 'timeout' });
});

test('deliveries that wait are spaced', async () => {
  const { all, reach } = scene();
  await all(12, 'fails');
  const waits = Array.from({ length: 10_000 }, () => reach.turn('a')?.waitMs ?? 0);
  expect(waits[5_000]).toBeGreaterThan(TRY_EVERY_MS + 90_000);
  expect(Math.max(...waits)).toBeLessThanOrEqual(600_000);
});

test('after a day failures count as always', async () => {
  const { all, pass, attempt, reach } = scene();
  await all(12, 'fails');
  pass(LONGEST_OUTAGE_MS);
  expect(await attempt(5, 'fails')).toBe('failed');
  expect(reach.turn('a')).toBeNull();
});

test.each([
  ['no probe', 'failed', null],
  ['a probe that answers', 'failed', async (): Promise<boolean> => true],
  ['a probe that fails', 'ours', async (): Promise<boolean> => false],
  ['a probe that breaks', 'ours', (): Promise<boolean> => Promise.reject(new Error('broken'))],
] as const)('with few endpoints and %s, the second failure is: %s', async (_what, kind, probe) => {
  const { all } = scene({ probe });
  expect(await all(2, 'fails')).toEqual(['failed', kind]);
});

test.each(['EMFILE', 'EADDRNOTAVAIL', 'EINVAL', 'ECONNREFUSED'])(
  '%s of this machine is ours at once, and no attempt is made in a hurry',
  async (code) => {
    const { reach, of } = scene();
    const failing = () => Promise.reject(Object.assign(new Error(code), { code }));
    const { outcome, detail } = await reach.judged(of(1), failing);
    expect(outcome).toMatchObject({ kind: 'ours', waitMs: TRY_EVERY_MS, sinceMs: null });
    expect(detail).toBe(code);
  },
);

test('any other error is thrown', async () => {
  const { reach, of } = scene();
  await expect(reach.judged(of(1), () => Promise.reject(new TypeError('a mistake')))).rejects.toThrow(
    TypeError,
  );
});
