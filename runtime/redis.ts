import { Redis } from 'ioredis';

/**
 * Opens Redis for the rate limit, with the short timeout that a limit deserves: nothing queues while it is away, a
 * command that hangs is given up, and the connection is tried again for ever, at most a second apart.
 */
export function connectRedis(url: string, timeoutMs: number, onError: (error: Error) => void): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    commandTimeout: timeoutMs,
    connectTimeout: 2_000,
    retryStrategy: (attempts) => Math.min(50 * attempts, 1_000),
  });
  redis.on('error', onError);
  return redis;
}
