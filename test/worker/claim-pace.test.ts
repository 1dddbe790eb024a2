import { createClaimPace } from '../../worker/claim-pace';

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

test('nobody rests for longer than 50 ms, whatever a claim has taken', () => {
  const pace = newPace();
  pace.spent(5_000);
  expect(pace.restMs(0)).toBe(50);
});

test('after a quiet second nothing is owed, however slow a claim was', () => {
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
