import {
  afterOutcome,
  describeOutcome,
  outcomeOfStatus,
  type DeliveryFailure,
  judgeFailing,
} from '../../domain/delivery-outcome';

it.each([200, 201, 202, 204, 250, 299])('%d is delivered', (status) => {
  const outcome = outcomeOfStatus(status, 83, 5_000);
  expect(outcome).toEqual({ kind: 'delivered', httpStatus: status, durationMs: 83 });
  expect(afterOutcome(outcome)).toBe('done');
  expect(describeOutcome(outcome)).toBe(`delivered: ${status} (83 ms)`);
});

it.each([
  [300, 'redirect'],
  [304, 'redirect'],
  [399, 'redirect'],
  [400, 'http_status'],
  [429, 'http_status'],
  [500, 'http_status'],
  [599, 'http_status'],
  [999, 'http_status'],
] as const)('%d is a failure that is tried again: %s', (httpStatus, failure) => {
  const outcome = outcomeOfStatus(httpStatus, 1_500, null);
  expect(outcome).toEqual({ kind: 'failed', failure, httpStatus, durationMs: 1_500, retryAfterMs: null });
  expect(afterOutcome(outcome)).toBe('retry');
});

test('410 is given up at once', () => {
  const outcome = outcomeOfStatus(410, 12, null);
  expect(outcome).toMatchObject({ kind: 'failed', failure: 'gone', httpStatus: 410 });
  expect(afterOutcome(outcome)).toBe('stop');
});

it.each([
  ['http_status', 500, 'answered 500 (1.5 s); asks to wait 120 s'],
  ['redirect', 302, 'answered 302, a redirect, which is not followed (1.5 s); asks to wait 120 s'],
] as const)('%s is described in one line', (failure, httpStatus, text) => {
  const outcome = { kind: 'failed', failure, httpStatus, durationMs: 1_500, retryAfterMs: 120_000 } as const;
  expect(describeOutcome(outcome)).toBe(text);
});

it.each<DeliveryFailure>(['connect', 'timeout', 'tls', 'dns', 'reset', 'blocked_address', 'protocol'])(
  '%s without a status is tried again, and says so without one',
  (failure) => {
    const outcome = { kind: 'failed', failure, httpStatus: null, durationMs: 5, retryAfterMs: null } as const;
    expect(afterOutcome(outcome)).toBe('retry');
    expect(describeOutcome(outcome)).toMatch(/^[^\n]{5,80} \(5 ms\)$/);
    expect(describeOutcome(outcome)).not.toContain('null');
  },
);

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
