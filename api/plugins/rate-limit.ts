import type { FastifyReply } from 'fastify';
import { ApiError } from '../errors';
import type { RateLimiter, RateLimitState } from '../limits/rate-limiter';

/**
 * Builds the count of a key's calls, and the check of its limit. Both forms of the headers go on every answer to a counted call:
 * `RateLimit-Reset` in seconds from now, rounded up, and `X-RateLimit-Reset` as the Unix second the window closes.
 */
export function rateLimits(limiter: RateLimiter, now: () => Date, onRefused: () => void) {
  const windowSeconds = String(limiter.windowSeconds);
  async function countCall(keyId: string, reply: FastifyReply) {
    const state = await limiter.consume(keyId);
    return { ...state, resetSeconds: setRateLimitHeaders(reply, state, windowSeconds, now()) };
  }
  async function checkRateLimit(keyId: string, reply: FastifyReply): Promise<void> {
    const { resetSeconds, ...state } = await countCall(keyId, reply);
    if (state.allowed) return;
    onRefused();
    void reply.header('Retry-After', String(resetSeconds));
    throw new ApiError(
      'RATE_LIMIT_EXCEEDED',
      `More than ${state.limit} requests in ${windowSeconds} seconds with this key. Retry in ${resetSeconds} s.`,
    );
  }
  return { countCall, checkRateLimit };
}

/** @returns seconds until the window closes, rounded up, at least 1. */
export function setRateLimitHeaders(
  reply: FastifyReply,
  state: Omit<RateLimitState, 'allowed'>,
  windowSeconds: string,
  now: Date,
): number {
  const resetSeconds = Math.max(1, Math.ceil(state.resetMs / 1000));
  const [limit, remaining] = [String(state.limit), String(state.remaining)];
  void reply
    .header('ratelimit-policy', `${limit};w=${windowSeconds}`)
    .header('ratelimit-limit', limit)
    .header('ratelimit-remaining', remaining)
    .header('ratelimit-reset', String(resetSeconds))
    .header('x-ratelimit-limit', limit)
    .header('x-ratelimit-remaining', remaining)
    .header('x-ratelimit-reset', String(Math.ceil((now.getTime() + state.resetMs) / 1000)));
  return resetSeconds;
}
