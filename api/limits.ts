import ipaddr from 'ipaddr.js';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Redis } from 'ioredis';
import type { Server, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { ApiError } from './errors';

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

/**
 * Most connections of one source address that have not brought a call with a valid key. A hundred servers of partners may
 * share an address, and none needs five at a time before its first call; with what Node keeps for each, 500 are some 30 MB.
 */
export const MOST_UNPROVEN_CONNECTIONS = 500;

/**
 * Bounds the connections that one address holds open, for a listener without a proxy in front. One too many closes the
 * oldest that has brought no valid key, never the new one: so a flood closes its own.
 */
export function limitConnections(server: Server, onClosed: () => void) {
  const sources = new Map<string, Map<string, Socket>>();
  const proven = new WeakSet<Socket>();

  function forget(source: string, peer: string): void {
    const open = sources.get(source);
    open?.delete(peer);
    if (open?.size === 0) sources.delete(source);
  }
  server.on('connection', (socket: Socket) => {
    const source = sourceOf(socket.remoteAddress);
    const peer = peerOf(socket);
    const open = sources.get(source) ?? new Map<string, Socket>();
    sources.set(source, open.set(peer, socket));
    socket.once('close', () => open.get(peer) === socket && forget(source, peer));
    if (open.size <= MOST_UNPROVEN_CONNECTIONS) return;
    const [oldest] = open;
    if (oldest === undefined) return;
    open.delete(oldest[0]);
    onClosed();
    oldest[1].destroy();
  });
  return {
    /** A call with a valid key came over this connection: it counts no longer. */
    proven(socket: Socket): void {
      // The socket of a request is that of TLS, and the one above lies beneath it: they share their peer.
      if (proven.has(socket)) return;
      proven.add(socket);
      forget(sourceOf(socket.remoteAddress), peerOf(socket));
    },
  };
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress}/${remotePort}`;

/**
 * What counts as one source: an IPv4 address, also in its IPv6 form; of IPv6 the /64, the least that one customer is given.
 * @param address as Node or Fastify names a peer.
 */
export function sourceOf(address: string | undefined): string {
  if (address === undefined || !ipaddr.isValid(address)) return 'unknown';
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6
    ? `${parsed.parts
        .slice(0, 4)
        .map((part) => part.toString(16))
        .join(':')}::/64`
    : parsed.toString();
}
