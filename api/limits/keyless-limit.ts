import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { ApiError } from '../errors';
import { setRateLimitHeaders } from '../plugins/rate-limit';
import { sourceOf } from './source-address';

const WINDOW_SECONDS = 60;
/** How long the answer to a call above the limit is held back: whoever waits for it calls no more often than that. */
const HOLD_MS = 1_000;

interface KeylessLimitOptions {
  /** Calls without a valid key per source address and minute, ≥ 1. */
  readonly limit: number;
  readonly now: () => Date;
  readonly onRefused: () => void;
}

export interface KeylessLimit {
  /**
   * Counts a call that brought no valid key. Call it only when that is known: a call with one is never refused for its address.
   * @throws ApiError 429 above the limit.
   */
  count(request: FastifyRequest, reply: FastifyReply): Promise<void>;
  /** Whether the next call without a valid key from this address is above the limit. */
  isReached(request: FastifyRequest): Promise<boolean>;
}

/** Limits calls without a valid key per source address, in this process. The rest costs as little as it can anyway. */
export function createKeylessLimit({ limit, now, onRefused }: KeylessLimitOptions): KeylessLimit {
  const calls = new RateLimiterMemory({ points: limit, duration: WINDOW_SECONDS, keyPrefix: 'keyless' });
  const held = new WeakSet<object>();

  return {
    async isReached(request) {
      const counted = await calls.get(sourceOf(request.ip));
      return counted !== null && counted.remainingPoints <= 0;
    },
    async count(request, reply) {
      const refused = await calls.consume(sourceOf(request.ip)).then(
        () => null,
        (result: unknown) => {
          if (result instanceof RateLimiterRes) return result;
          throw result;
        },
      );
      if (refused === null) return;
      onRefused();
      const state = { limit, remaining: 0, resetMs: refused.msBeforeNext };
      const seconds = setRateLimitHeaders(reply, state, String(WINDOW_SECONDS), now());
      // That a valid key would change the answer (RFC 9110 §11.6.1), which no refusal of a call with one says.
      void reply.headers({ 'Retry-After': String(seconds), 'WWW-Authenticate': 'Bearer' });
      await hold(request.raw.socket);
      throw new ApiError(
        'RATE_LIMIT_EXCEEDED',
        `More than ${limit} calls in ${WINDOW_SECONDS} seconds without a valid key from your address. Retry in ${seconds} s.`,
      );
    },
  };

  /** Calls that were sent without waiting for the answers to those before them would be held side by side: the connection ends. */
  async function hold(socket: FastifyRequest['raw']['socket']): Promise<void> {
    if (held.has(socket)) return void socket.destroy();
    held.add(socket);
    await sleep(HOLD_MS);
    held.delete(socket);
  }
}
