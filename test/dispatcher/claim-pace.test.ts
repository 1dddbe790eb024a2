import { createClaimPace } from '../../dispatcher/claim-pace';

let nowMs = 0;
const pace = () => createClaimPace(() => nowMs);
beforeEach(() => (nowMs = 0));

test('some short claims in a row need no rest', () => {
  const { spent, restMs } = pace();
  for (let nth = 0; nth < 10; nth += 1) {
    nowMs += 2;
    spent(2);
    expect(restMs()).toBe(0);
  }
});

test('claims that follow one another take a tenth of the time in the long run', () => {
  const { spent, restMs } = pace();
  let claims = 0;
  while (nowMs < 10_000) {
    nowMs += 5;
    claims += 1;
    spent(5);
    nowMs += restMs();
  }
  expect((claims * 5) / nowMs).toBeCloseTo(0.1, 1);
});

test('nobody rests for longer than 50 ms, whatever a claim has taken', () => {
  const { spent, restMs } = pace();
  spent(5_000);
  expect(restMs()).toBe(50);
});

test('after a quiet second nothing is owed, however slow a claim was', () => {
  const { spent, restMs } = pace();
  spent(5_000);
  expect(restMs()).toBe(50);
  nowMs += 1_000;
  spent(15);
  expect(restMs()).toBe(0);
});
