import { Redis } from 'ioredis';
import { startRedis } from '../support/redis';
import { fileNeeds } from '../support/needs';

fileNeeds('Redis');

test('freezes, dies and comes back empty', async () => {
  const server = await startRedis();
  const redis = new Redis(server.url, { retryStrategy: () => 20, maxRetriesPerRequest: null });
  redis.on('error', () => undefined);
  try {
    await redis.set('key', 'value');

    server.freeze();
    const answer = redis.get('key');
    const patience = new Promise((resolve) => setTimeout(resolve, 150, 'silent'));
    expect(await Promise.race([answer, patience])).toBe('silent');
    server.unfreeze();
    expect(await answer).toBe('value');

    await server.kill();
    await server.start();
    expect(await redis.get('key')).toBeNull();
  } finally {
    redis.disconnect();
    await server.stop();
  }
});
