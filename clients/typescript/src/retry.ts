import { ApiError } from './api-error.js';

const FIRST_BACKOFF_MS = 500;

/**
 * How long to wait before a call is repeated; null: never.
 * @param tried how often it was, so far.
 * @param repeatable whether doing it twice does no harm. After a 429 nothing was done, so that any call may be repeated.
 */
export function retryAfterMs(error: unknown, tried: number, repeatable: boolean): number | null {
  // Half of it by chance, so that many clients do not come back at once.
  const backoffMs = FIRST_BACKOFF_MS * 2 ** (tried - 1) * (0.5 + Math.random() / 2);
  if (!(error instanceof ApiError)) return repeatable ? backoffMs : null;
  const { status, code, retryAfterSeconds } = error;
  const wantedMs = retryAfterSeconds === null ? backoffMs : retryAfterSeconds * 1_000;
  // The month's tests are used up: nothing that a wait would change.
  if (status === 429) return code === 'TEST_NOTIFICATION_LIMIT_REACHED' ? null : wantedMs;
  // Only we can complete a merchant's set-up.
  if (status < 500 || code === 'MERCHANT_CONFIGURATION_INCOMPLETE') return null;
  return repeatable ? wantedMs : null;
}

/** @throws the signal's reason as soon as it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
