import type { FastifyReply } from 'fastify';
import { ApiError } from '../errors';
import type { RateLimiter, RateLimitState } from '../limits/rate-limiter';

/**
 * Builds the check of the rate limit. Both forms of the headers go on every answer to a keyed call (spec §8):
 * `RateLimit-Reset` in seconds from now, rounded up, and `X-RateLimit-Reset` as the Unix second the window closes.
 */
export function rateLimitCheck(limiter: RateLimiter, now: () => Date, onRefused: () => void) {
  const windowSeconds = String(limiter.windowSeconds);
  return async function checkRateLimit(keyId: string, reply: FastifyReply): Promise<void> {
    const state = await limiter.consume(keyId);
    const resetSeconds = Math.max(1, Math.ceil(state.resetMs / 1000));
    setHeaders(
      reply,
      state,
      windowSeconds,
      resetSeconds,
      Math.ceil((now().getTime() + state.resetMs) / 1000),
    );
    if (state.allowed) return;
    onRefused();
    void reply.header('Retry-After', String(resetSeconds));
    throw new ApiError(
      'RATE_LIMIT_EXCEEDED',
      `More than ${state.limit} requests in ${windowSeconds} seconds with this key. Retry in ${resetSeconds} s.`,
    );
  };
}

function setHeaders(
  reply: FastifyReply,
  state: RateLimitState,
  windowSeconds: string,
  resetSeconds: number,
  resetAt: number,
): void {
  const limit = String(state.limit);
  const remaining = String(state.remaining);
  void reply.headers({
    'RateLimit-Policy': `${limit};w=${windowSeconds}`,
    'RateLimit-Limit': limit,
    'RateLimit-Remaining': remaining,
    'RateLimit-Reset': String(resetSeconds),
    'X-RateLimit-Limit': limit,
    'X-RateLimit-Remaining': remaining,
    'X-RateLimit-Reset': String(resetAt),
  });
}
