import { Redis } from 'ioredis';
import { startTestApi, type TestApi } from '../support/api';
import { needs } from '../support/needs';
import { startRedis, type TestRedis } from '../support/redis';

const LIMIT = { RATE_LIMIT_PER_MINUTE: '100' };
/** A hundred calls at once keep a busy machine's event loop for longer than Redis is waited for in earnest. */
const PATIENT = { redisTimeoutMs: 10_000 };

async function statuses(api: TestApi, calls: number, key: string) {
  const answers = await Promise.all(Array.from({ length: calls }, () => api.quote({}, { key })));
  for (const answer of answers) {
    expect(answer.headers).toHaveProperty('ratelimit-reset');
    if (answer.status === 429) expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  }
  const count = (status: number) => answers.filter((answer) => answer.status === status).length;
  return { ok: count(200), refused: count(429) };
}

async function fallbacks(api: TestApi): Promise<number> {
  const metrics = await (await fetch(`http://127.0.0.1:${api.internalPort}/metrics`)).text();
  return Number(/^pfqs_rate_limit_fallback_total (\d+)$/m.exec(metrics)?.[1]);
}

const warned = (api: TestApi) => api.logs.some((line) => line.includes('rate limits are counted in memory'));

test('admits exactly 100 of 200 concurrent calls, in memory', async () => {
  const api = await startTestApi({ environment: LIMIT });
  try {
    expect(await statuses(api, 200, api.keys.test)).toEqual({ ok: 100, refused: 100 });
    expect(await statuses(api, 100, api.keys.live)).toEqual({ ok: 100, refused: 0 });
    expect(await fallbacks(api)).toBe(0);
  } finally {
    await api.close();
  }
});

needs('Redis')('with Redis', () => {
  let redis: TestRedis;
  let one: TestApi;
  let two: TestApi;
  const both = [] as TestApi[];

  beforeEach(async () => {
    redis = await startRedis();
    const environment = { ...LIMIT, REDIS_URL: redis.url };
    one = await startTestApi({ environment, ...PATIENT });
    two = await startTestApi({ environment, ...PATIENT, databaseUrl: one.databaseUrl, keys: one.keys });
    both.splice(0, 2, one, two);
    for (const api of both) await redisReady(api);
  });
  afterEach(async () => {
    await two.close();
    await one.close();
    await redis.stop();
  });

  /** The first calls of a process may come before its connection: waits until a call is counted in Redis. */
  async function redisReady(api: TestApi): Promise<void> {
    for (let tries = 0; tries < 50; tries += 1) {
      const before = await fallbacks(api);
      await api.quote({}, { key: api.keys.live });
      if ((await fallbacks(api)) === before) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error('Redis was never used');
  }

  test('two processes share the limit: 100 of 200 concurrent calls', async () => {
    const [left, right] = await Promise.all([
      statuses(one, 100, one.keys.test),
      statuses(two, 100, one.keys.test),
    ]);
    expect(left.ok + right.ok).toBe(100);
    expect(left.refused + right.refused).toBe(100);
  });

  test('Redis killed in mid-window: counted in memory, at most one more window, no 500', async () => {
    expect(await statuses(one, 100, one.keys.test)).toEqual({ ok: 100, refused: 0 });
    await redis.kill();
    const before = performance.now();
    const answer = await one.quote();
    expect(answer.status).toBe(200);
    expect(answer.headers['ratelimit-remaining']).toBe('99');
    expect(performance.now() - before).toBeLessThan(1_000);
    expect(await statuses(one, 150, one.keys.test)).toEqual({ ok: 99, refused: 51 });
    expect(await fallbacks(one)).toBeGreaterThan(0);
    expect(warned(one)).toBe(true);
  });

  test('Redis hung: counted in memory after its timeout, then left alone for a while', async () => {
    const environment = { ...LIMIT, REDIS_URL: redis.url };
    const api = await startTestApi({ environment, databaseUrl: one.databaseUrl, keys: one.keys });
    try {
      await redisReady(api);
      const before = await fallbacks(api);
      redis.freeze();
      expect(await statuses(api, 150, api.keys.test)).toEqual({ ok: 100, refused: 50 });
      expect(await fallbacks(api)).toBeGreaterThan(before);
      expect(warned(api)).toBe(true);
      redis.unfreeze();
      await new Promise((resolve) => setTimeout(resolve, 1_200));
      const answer = await api.quote();
      expect([200, 429]).toContain(answer.status);
      expect(answer.headers).toHaveProperty('ratelimit-limit', '100');
    } finally {
      redis.unfreeze();
      await api.close();
    }
  });

  test('a key that Redis has lost opens a new window without an error', async () => {
    await statuses(one, 100, one.keys.test);
    expect((await one.quote()).status).toBe(429);
    const admin = new Redis(redis.url);
    await admin.flushall();
    admin.disconnect();
    const answer = await one.quote();
    expect(answer.status).toBe(200);
    expect(answer.headers['ratelimit-remaining']).toBe('99');
  });

  test('a clock that steps back changes neither the count nor the wait', async () => {
    const first = await one.quote();
    const realNow = Date.now;
    const step = jest.spyOn(Date, 'now').mockImplementation(() => realNow() - 10 * 60_000);
    const second = await one.quote();
    step.mockRestore();
    expect(second.status).toBe(200);
    expect(Number(second.headers['ratelimit-remaining'])).toBeLessThanOrEqual(
      Number(first.headers['ratelimit-remaining']),
    );
    expect(Number(second.headers['ratelimit-reset'])).toBeLessThanOrEqual(60);
  });
});
