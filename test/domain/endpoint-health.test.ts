import { judgeFailing } from '../../domain/delivery-outcome';

test.each([
  [0, 1, 0, null],
  [23.9, 400, 0, null],
  [24, 2, 0, { kind: 'warn', hours: 24 }],
  [30, 3, 24, null],
  [48, 3, 24, { kind: 'warn', hours: 48 }],
  // One that was quiet for long skips the warnings in between.
  [97, 3, 24, { kind: 'warn', hours: 96 }],
  [97, 3, 96, null],
  [119.9, 100, 96, null],
  [120, 19, 96, null],
  [120, 20, 96, { kind: 'disable' }],
  [400, 19, 0, { kind: 'warn', hours: 96 }],
  [400, 20, 0, { kind: 'disable' }],
])('after %d h and %d failures, warned at %d h: %j', (hours, failures, warnedHours, verdict) => {
  expect(judgeFailing({ hours, failures, warnedHours })).toEqual(verdict);
});
