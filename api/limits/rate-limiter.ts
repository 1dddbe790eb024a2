import type { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';

export interface RateLimitState {
  readonly allowed: boolean;
  readonly limit: number;
  /** Calls left in this window, ≥ 0. */
  readonly remaining: number;
  /** Milliseconds until the window closes. */
  readonly resetMs: number;
}

export interface RateLimiter {
  /** Window length in whole seconds. */
  readonly windowSeconds: number;
  /** Counts one call of a key. Never fails: without Redis it counts in memory. */
  consume(keyId: string): Promise<RateLimitState>;
}

interface RateLimiterOptions {
  /** Calls per key and window, ≥ 1. */
  readonly limit: number;
  readonly windowSeconds: number;
  /** Shared store; null: each process counts for itself. */
  readonly redis: Redis | null;
  /** Called when a call had to be counted in memory although Redis is configured. */
  readonly onFallback: (cause: unknown) => void;
  readonly monotonicMs: () => number;
}

/** How long Redis is left alone after it failed or hung: one call a second pays for finding out whether it is back. */
const REST_MS = 1_000;

/**
 * Counts calls per key in windows that open at the key's first call. With Redis the count is shared by all API
 * processes (one atomic script per call); while Redis is away, hung or failing the process counts in memory, so that
 * at most one more window's worth per process is admitted.
 */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { limit, windowSeconds, redis, onFallback, monotonicMs } = options;
  const settings = { points: limit, duration: windowSeconds, keyPrefix: 'rate' };
  const memory = new RateLimiterMemory(settings);
  const shared =
    redis && new RateLimiterRedis({ ...settings, storeClient: redis, rejectIfRedisNotReady: true });
  let restUntilMs = 0;

  const state = ({ remainingPoints, msBeforeNext }: RateLimiterRes, allowed: boolean): RateLimitState => ({
    allowed,
    limit,
    remaining: Math.max(0, remainingPoints),
    resetMs: Math.max(0, msBeforeNext),
  });
  const consumeFrom = (limiter: RateLimiterMemory | RateLimiterRedis, keyId: string) =>
    limiter.consume(keyId).then(
      (counted) => state(counted, true),
      (refused: unknown) => {
        if (refused instanceof RateLimiterRes) return state(refused, false);
        throw refused;
      },
    );
  function consume(keyId: string): Promise<RateLimitState> {
    if (shared === null || monotonicMs() < restUntilMs) return consumeFrom(memory, keyId);
    return consumeFrom(shared, keyId).catch((cause: unknown) => {
      restUntilMs = monotonicMs() + REST_MS;
      onFallback(cause);
      return consumeFrom(memory, keyId);
    });
  }
  return { windowSeconds, consume };
}
