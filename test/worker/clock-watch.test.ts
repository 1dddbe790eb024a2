import { createClockWatch } from '../../worker/clock-watch';

const MINUTE_MS = 60_000;

function watch() {
  const told: [number, number][] = [];
  const clock = { nowMs: 0 };
  const watching = createClockWatch({
    monotonicMs: () => clock.nowMs,
    onSkew: (skewMs, hosts) => void told.push([skewMs, hosts]),
  });
  return { ...watching, told, clock };
}

test('a host or two with a wrong clock say nothing of ours, however often they speak', () => {
  const { observe, skewMs, told } = watch();
  for (const host of ['a', 'b', 'c']) observe(host, 400);
  for (let times = 0; times < 50; times += 1) {
    observe('wrong', -MINUTE_MS * 60);
    observe('also wrong', MINUTE_MS * 600);
  }
  expect(skewMs()).toBe(400);
  expect(told).toEqual([]);
});

test('two minutes are borne; beyond them it is told at once, then every ten minutes, and at once after a recovery', () => {
  const { observe, told, clock } = watch();
  const hear = (skewMs: number) => ['a', 'b', 'c'].forEach((host) => observe(host, skewMs));
  hear(-2 * MINUTE_MS);
  expect(told).toHaveLength(0);
  hear(-2 * MINUTE_MS - 1);
  expect(told).toHaveLength(1);
  clock.nowMs += 10 * MINUTE_MS - 1;
  hear(-2 * MINUTE_MS - 1);
  expect(told).toHaveLength(1);
  clock.nowMs += 1;
  hear(-2 * MINUTE_MS - 1);
  expect(told).toHaveLength(2);
  hear(0);
  hear(3 * MINUTE_MS);
  expect(told).toHaveLength(3);
});

test('what was heard a quarter of an hour ago, or before 31 other hosts, is forgotten', () => {
  const { observe, skewMs, clock } = watch();
  for (const host of ['a', 'b', 'c']) observe(host, 10 * MINUTE_MS);
  clock.nowMs += 15 * MINUTE_MS + 1;
  expect(skewMs()).toBeNull();
  for (let host = 0; host < 40; host += 1) observe(`early ${host}`, 10 * MINUTE_MS);
  for (let host = 0; host < 31; host += 1) observe(`late ${host}`, 0);
  observe('late 0', 5);
  observe('late 1', 5);
  expect(skewMs()).toBe(0);
});
