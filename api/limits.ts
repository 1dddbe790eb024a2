import { once } from 'node:events';
import type { Server, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Redis } from 'ioredis';
import ipaddr from 'ipaddr.js';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { refused } from './errors';

/** Window of both rate limits. It opens at the first call of a key or address. */
const WINDOW_SECONDS = 60;
/** After a failure Redis is not asked for this long, so that only one call a second waits in vain. */
const REST_MS = 1_000;
const CONNECT_MS = 2_000;

/**
 * Counts a call in Redis, as the library's own script does, and also closes a window that would last
 * longer than one: after its clock has stepped back, Redis would keep a key for as much longer.
 */
const COUNT_CALL = `
  redis.call('set', KEYS[1], 0, 'EX', ARGV[2], 'NX')
  local consumed = redis.call('incrby', KEYS[1], ARGV[1])
  local ttl = redis.call('pttl', KEYS[1])
  if ttl == -1 or ttl > 1000 * ARGV[2] then
    redis.call('expire', KEYS[1], ARGV[2])
    ttl = 1000 * ARGV[2]
  end
  return {consumed, ttl}`;

type RateLimitState = Awaited<ReturnType<typeof consumeFrom>>;

// Every keyed call passes here, so no function is made for each: that cost a twentieth of a quote.
async function consumeFrom(limiter: RateLimiterMemory | RateLimiterRedis, caller: string) {
  try {
    return { allowed: true, limit: limiter.points, counted: await limiter.consume(caller) };
  } catch (refused) {
    if (refused instanceof RateLimiterRes) return { allowed: false, limit: limiter.points, counted: refused };
    throw refused;
  }
}

interface RateLimiterOptions {
  readonly limit: number;
  /** Shared store; null: each process counts for itself. */
  readonly redis: Redis | null;
  readonly onFallback: (cause: unknown) => void;
}

/** Counts one call of a key. It never fails, as without Redis it counts in memory. */
export type RateLimiter = (keyId: string) => Promise<RateLimitState>;

/** Counts calls per key and minute, in Redis for all API processes, or else in each process. */
export function createRateLimiter({ limit, redis, onFallback }: RateLimiterOptions): RateLimiter {
  const settings = { points: limit, duration: WINDOW_SECONDS, keyPrefix: 'rate' };
  const memory = new RateLimiterMemory(settings);
  const shared =
    redis &&
    new RateLimiterRedis({
      ...settings,
      storeClient: redis,
      rejectIfRedisNotReady: true,
      customIncrTtlLuaScript: COUNT_CALL,
    });
  let restUntilMs = 0;
  return (keyId) => {
    if (shared === null || performance.now() < restUntilMs) return consumeFrom(memory, keyId);
    return consumeFrom(shared, keyId).catch((cause: unknown) => {
      restUntilMs = performance.now() + REST_MS;
      onFallback(cause);
      return consumeFrom(memory, keyId);
    });
  };
}

export function rateLimits(limiter: RateLimiter, onRefused: () => void) {
  async function countCall(keyId: string, reply: FastifyReply): Promise<void> {
    setRateLimitHeaders(reply, await limiter(keyId));
  }
  async function checkRateLimit(keyId: string, reply: FastifyReply): Promise<void> {
    const state = await limiter(keyId);
    const resetSeconds = setRateLimitHeaders(reply, state);
    if (state.allowed) return;
    onRefused();
    void reply.header('Retry-After', String(resetSeconds));
    const of = 'with this key';
    throw refused('RATE_LIMIT_EXCEEDED', { limit: state.limit, of, retrySeconds: resetSeconds });
  }
  return { countCall, checkRateLimit };
}

/**
 * Sets `RateLimit-Reset` in seconds from now, and `X-RateLimit-Reset` in Unix seconds.
 * @returns seconds until the window closes, 1 to 60
 */
function setRateLimitHeaders(reply: FastifyReply, state: RateLimitState): number {
  // In memory the window closes by a timer, but its rest is read from the wall clock, which may have been set.
  const resetMs = Math.min(Math.max(0, state.counted.msBeforeNext), WINDOW_SECONDS * 1_000);
  const resetSeconds = Math.max(1, Math.ceil(resetMs / 1000));
  const [limit, remaining] = [String(state.limit), String(Math.max(0, state.counted.remainingPoints))];
  void reply
    .header('ratelimit-policy', `${limit};w=${WINDOW_SECONDS}`)
    .header('ratelimit-limit', limit)
    .header('ratelimit-remaining', remaining)
    .header('ratelimit-reset', String(resetSeconds))
    .header('x-ratelimit-limit', limit)
    .header('x-ratelimit-remaining', remaining)
    .header('x-ratelimit-reset', String(Math.ceil((Date.now() + resetMs) / 1000)));
  return resetSeconds;
}

const HOLD_MS = 1_000;

export type KeylessLimit = ReturnType<typeof createKeylessLimit>;

/**
 * Limits calls without a valid key per source address, in this process.
 * @param limit calls per address and minute, ≥ 1
 */
export function createKeylessLimit(limit: number, onRefused: () => void) {
  const calls = new RateLimiterMemory({ points: limit, duration: WINDOW_SECONDS, keyPrefix: 'keyless' });
  const held = new WeakSet<object>();

  return {
    async isReached(request: FastifyRequest): Promise<boolean> {
      const counted = await calls.get(sourceOf(request.ip));
      return counted !== null && counted.remainingPoints <= 0;
    },
    /**
     * Counts a call without a valid key. Calls with one are never refused for their address.
     * @throws ApiError 429 above the limit
     */
    async count(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const state = await consumeFrom(calls, sourceOf(request.ip));
      if (state.allowed) return;
      onRefused();
      const seconds = setRateLimitHeaders(reply, state);
      // WWW-Authenticate says that a valid key would change the answer (RFC 9110 §11.6.1).
      void reply.headers({ 'Retry-After': String(seconds), 'WWW-Authenticate': 'Bearer' });
      await hold(request.raw.socket);
      const of = 'without a valid key from your address';
      throw refused('RATE_LIMIT_EXCEEDED', { limit, of, retrySeconds: seconds });
    },
  };

  /** Delays the answer. A second call on the connection meanwhile was sent without waiting, and closes it. */
  async function hold(socket: FastifyRequest['raw']['socket']): Promise<void> {
    if (held.has(socket)) return void socket.destroy();
    held.add(socket);
    await sleep(HOLD_MS);
    held.delete(socket);
  }
}

/** Connections of an address before its first valid key: a hundred servers may share one. 500 take 30 MB. */
export const MOST_UNPROVEN_CONNECTIONS = 500;

/**
 * Limits the connections of an address. One too many closes the oldest that has shown no valid key, so
 * that a flood closes its own connections.
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
    proven(socket: Socket): void {
      // A request has the TLS socket, which has the same peer as the counted TCP socket below it.
      if (proven.has(socket)) return;
      proven.add(socket);
      forget(sourceOf(socket.remoteAddress), peerOf(socket));
    },
  };
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress}/${remotePort}`;

/** One source is an IPv4 address, also in its IPv6 form, or the /64 of an IPv6 address. */
export function sourceOf(address: string | undefined): string {
  // Some proxies name a client with its port, such as Azure's Application Gateway.
  const bare = (address ?? '').replace(/^(?:\[(.+)\]|([\d.]+)):\d+$/, '$1$2');
  if (!ipaddr.isValid(bare)) return 'unknown';
  const parsed = ipaddr.process(bare);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const network = parsed.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(':')}::/64`;
}

/** Counts a call of nobody. @returns why Redis does not count calls, for operators; null when it does */
export async function redisTrouble(redis: Redis): Promise<string | null> {
  // At the start it is still being connected to, and the network of a new pod may refuse that for the first seconds.
  const inTime = AbortSignal.timeout(2 * CONNECT_MS);
  while (redis.status !== 'ready' && !inTime.aborted)
    await once(redis, 'ready', { signal: inTime }).catch(() => undefined);
  return redis.eval(COUNT_CALL, 1, 'rate:nobody', 1, WINDOW_SECONDS).then(
    () => null,
    (error: Error) => {
      const why = redis.status === 'ready' ? error.message : 'not connected';
      return `counts rate limits for itself, because Redis does not (${why})`;
    },
  );
}

/** Opens Redis for the rate limit. While it is away commands fail at once; others time out. */
export function connectRedis(url: string, timeoutMs: number, onError: (error: Error) => void): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    commandTimeout: timeoutMs,
    connectTimeout: CONNECT_MS,
    // A host that is lost resets nothing, and TCP would wait for it for a quarter of an hour.
    socketTimeout: 2_000,
    // It asks by INFO, which a user of Redis may not be allowed, and prints that past the log.
    enableReadyCheck: false,
    // After a failover the connection still leads to the former primary, and the address to the present one.
    reconnectOnError: ({ message }) => /READONLY|MASTERDOWN|NOREPLICAS/.test(message),
    retryStrategy: (attempts) => Math.min(50 * attempts, 1_000),
  });
  redis.on('error', onError);
  return redis;
}
