import type { DeliveryOutcome } from '../../domain/delivery-outcome';

/** What attempts of tests come to, where it does not matter how fast. */
export const DELIVERED = {
  kind: 'delivered',
  httpStatus: 200,
  durationMs: 12,
} as const satisfies DeliveryOutcome;

export const FAILED = {
  kind: 'failed',
  failure: 'http_status',
  httpStatus: 503,
  durationMs: 7,
  retryAfterMs: null,
} as const satisfies DeliveryOutcome;
