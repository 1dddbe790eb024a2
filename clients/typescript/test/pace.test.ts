import { createPace } from '../src/pace';

const answer = (remaining: number, resetSeconds: number, limit = 100) =>
  new Headers({
    'ratelimit-limit': String(limit),
    'ratelimit-remaining': String(remaining),
    'ratelimit-reset': String(resetSeconds),
  });

test('nothing waits before the first answer, nor while half of the requests are left', () => {
  const pace = createPace();
  expect(pace.waitMs(0)).toBe(0);
  pace.observe(answer(50, 40), 0);
  expect(pace.waitMs(0)).toBe(0);
});

test('below half, what is left is spread over the rest of the minute', () => {
  const pace = createPace();
  pace.observe(answer(40, 20), 1_000);
  expect(pace.waitMs(1_000)).toBe(500);
  // In order, however many ask at once: each behind the one before.
  expect(pace.waitMs(1_000)).toBeGreaterThan(1_000);
  pace.observe(answer(0, 20), 60_000);
  expect(pace.waitMs(60_000)).toBe(20_000);
  expect(pace.waitMs(60_000)).toBe(20_000);
});

test('sequential calls use up what is left by the end of the minute, not before', () => {
  const pace = createPace();
  const endMs = 30_000;
  let [nowMs, left] = [0, 45];
  while (nowMs < endMs && left > 0) {
    pace.observe(answer(left, (endMs - nowMs) / 1_000), nowMs);
    nowMs += pace.waitMs(nowMs);
    left -= 1;
  }
  expect(left).toBeLessThan(3);
  expect(nowMs).toBeGreaterThan(0.9 * endMs);
});

test('a new minute begins anew, and an answer without the headers changes nothing', () => {
  const pace = createPace();
  pace.observe(answer(1, 10), 0);
  pace.observe(new Headers(), 0);
  expect(pace.waitMs(0)).toBe(10_000);
  expect(pace.waitMs(10_000)).toBe(0);
});
