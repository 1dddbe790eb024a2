import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { connectRedis, redisTrouble } from '../../api/limits';
import { BEAT_EVERY_MS } from '../../db/processes';
import { listProcesses } from '../../db/processes';
import { freePort } from '../../dev/ports';
import { startTestApi, type TestApi } from '../support/api';
import { openDatabaseAt } from '../support/database';
import { until } from '../../testbed/until';
import { needs } from '../support/needs';
import { startRedis, type TestRedis } from '../support/redis';
import { startTcpProxy } from '../support/tcp-proxy';

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

const fallbacks = (api: TestApi) => api.metric('pfqs_rate_limit_fallback_total');
const troubles = async (api: TestApi) => {
  const database = openDatabaseAt(api.databaseUrl);
  const running = await listProcesses(database.db);
  await database.close();
  return running.map(({ trouble }) => trouble);
};
const warnings = (api: TestApi) => api.logged('rate limits are counted in memory');

test('admits exactly 100 of 200 concurrent calls, in memory', async () => {
  const api = await startTestApi({ environment: LIMIT });
  expect(await statuses(api, 200, api.keys.test)).toEqual({ ok: 100, refused: 100 });
  expect(await statuses(api, 100, api.keys.live)).toEqual({ ok: 100, refused: 0 });
  expect(await fallbacks(api)).toBe(0);
  await api.close();
});

const HOUR_MS = 3_600_000;

/** The clock of this machine, an hour off. */
function stepClock(byMs: number) {
  const realNow = Date.now;
  return jest.spyOn(Date, 'now').mockImplementation(() => realNow() + byMs);
}

test.each([
  ['an hour back', -HOUR_MS],
  ['an hour forward', HOUR_MS],
])('nobody is told to wait longer than the window when the clock steps %s', async (_which, byMs) => {
  const api = await startTestApi({
    environment: { RATE_LIMIT_PER_MINUTE: '1', KEYLESS_CALLS_PER_MINUTE: '1' },
  });
  const withKey = () => api.quote();
  const without = () => api.quote({}, { key: `sk_live_${'x'.repeat(32)}` });
  for (const call of [withKey, without]) await call();
  const step = stepClock(byMs);
  try {
    for (const call of [withKey, without]) {
      await call();
      const { status, headers } = await call();
      expect(status).toBe(429);
      for (const name of ['retry-after', 'ratelimit-reset']) {
        expect(Number(headers[name])).toBeGreaterThanOrEqual(1);
        expect(Number(headers[name])).toBeLessThanOrEqual(60);
      }
      expect(Number(headers['x-ratelimit-reset'])).toBeLessThanOrEqual(Math.ceil(Date.now() / 1_000) + 60);
    }
  } finally {
    step.mockRestore();
    await api.close();
  }
});

needs('Redis')('with Redis', () => {
  let redis: TestRedis;
  let one: TestApi;
  let two: TestApi;

  beforeAll(async () => {
    redis = await startRedis();
    const environment = { ...LIMIT, REDIS_URL: redis.url };
    one = await startTestApi({ environment, ...PATIENT });
    two = await startTestApi({ environment, ...PATIENT, databaseUrl: one.databaseUrl, keys: one.keys });
    for (const api of [one, two]) await redisReady(api);
    // A process that has just started, and still connects, is in no trouble.
    await until(async () => (await troubles(one)).length === 2, 'both beats');
    expect(await troubles(one)).toEqual([null, null]);
  });
  test('a process that reaches Redis only after a second, as a new pod may, is in no trouble', async () => {
    const address = createServer((from) => from.pipe(connect(redis.port, '127.0.0.1')).pipe(from));
    const port = await freePort();
    const client = connectRedis(`redis://127.0.0.1:${port}`, 5_000, () => undefined);
    try {
      const said = redisTrouble(client);
      await sleep(1_500);
      address.listen(port, '127.0.0.1');
      expect(await said).toBeNull();
    } finally {
      client.disconnect();
      address.close();
    }
  });
  test('a process that reaches Redis later still says so at once, and not with its next beat', async () => {
    const address = createServer((from) => from.pipe(connect(redis.port, '127.0.0.1')).pipe(from));
    const port = await freePort();
    const late = await startTestApi({ environment: { ...LIMIT, REDIS_URL: `redis://127.0.0.1:${port}` } });
    try {
      await until(
        async () => /not connected/.test(String((await troubles(late))[0])),
        'it says that it is not',
        20_000,
      );
      address.listen(port, '127.0.0.1');
      await until(async () => (await troubles(late))[0] === null, 'it says that it is', BEAT_EVERY_MS / 2);
    } finally {
      await late.close();
      address.close();
    }
  });
  beforeEach(forget);
  afterAll(async () => {
    await two.close();
    await one.close();
    await redis.close();
  });

  async function forget(): Promise<void> {
    const admin = new Redis(redis.url);
    await admin.flushall();
    admin.disconnect();
  }

  /** The first calls of a process may come before its connection: waits until a call is counted in Redis. */
  const redisReady = (api: TestApi) =>
    until(async () => {
      const before = await fallbacks(api);
      await api.quote({}, { key: api.keys.live });
      return (await fallbacks(api)) === before;
    }, 'a call is counted in Redis');

  test('two processes share the limit: 100 of 200 concurrent calls', async () => {
    const both = [one, two].map((api) => statuses(api, 100, one.keys.test));
    const admitted = (await Promise.all(both)).reduce((sum, { ok }) => sum + ok, 0);
    expect(admitted).toBe(100);
  });

  test('a key that Redis has lost opens a new window without an error', async () => {
    await statuses(one, 100, one.keys.test);
    expect((await one.quote()).status).toBe(429);
    await forget();
    expect(await one.quote()).toMatchObject({ status: 200, headers: { 'ratelimit-remaining': '99' } });
  });

  test('a clock that steps back changes neither the count nor the wait', async () => {
    const first = await one.quote();
    const step = stepClock(-HOUR_MS);
    const second = await one.quote();
    step.mockRestore();
    expect(second.status).toBe(200);
    const remaining = (answer: typeof first) => Number(answer.headers['ratelimit-remaining']);
    expect(remaining(second)).toBeLessThanOrEqual(remaining(first));
    expect(Number(second.headers['ratelimit-reset'])).toBeLessThanOrEqual(60);
  });

  test('when the clock of Redis has stepped back an hour, the window closes a minute after the next call', async () => {
    await statuses(one, 100, one.keys.test);
    const admin = new Redis(redis.url);
    try {
      const [key = ''] = await admin.keys('rate:key_*');
      // A key has a moment at which it ends, by Redis' clock: so it looks after the step.
      await admin.pexpire(key, HOUR_MS + 30_000);
      const { status, headers } = await one.quote();
      expect(status).toBe(429);
      expect(Number(headers['retry-after'])).toBeLessThanOrEqual(60);
      expect(await admin.pttl(key)).toBeLessThanOrEqual(60_000);
    } finally {
      admin.disconnect();
    }
  });

  test('a user of Redis with the commands of the count alone: counted in Redis, and no line beside the log', async () => {
    const admin = new Redis(redis.url);
    const beside = jest.spyOn(console, 'warn').mockImplementation();
    await admin.call('ACL', 'SETUSER', 'quotes', 'on', '>pw', '~rate:*', '-@all');
    for (const command of ['eval', 'evalsha', 'set', 'incrby', 'pttl', 'expire'])
      await admin.call('ACL', 'SETUSER', 'quotes', `+${command}`);
    const environment = { ...LIMIT, REDIS_URL: redis.url.replace('//', '//quotes:pw@') };
    const api = await startTestApi({ environment, databaseUrl: one.databaseUrl, keys: one.keys });
    try {
      await redisReady(api);
      expect(await admin.keys('rate:key_*')).toHaveLength(1);
      expect(beside.mock.calls).toEqual([]);
    } finally {
      admin.disconnect();
      beside.mockRestore();
      await api.close();
    }
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
      expect(warnings(api)).not.toEqual([]);
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

  /** How a former primary refuses to write, on a connection that stays open. */
  const demote = {
    'is a replica now': (former: Redis) => former.replicaof('127.0.0.1', 1),
    async 'is a replica without a primary, and serves nothing stale'(former: Redis) {
      await former.config('SET', 'replica-serve-stale-data', 'no');
      await former.replicaof('127.0.0.1', 1);
    },
    'reaches none of the replicas that it must write to': (former: Redis) =>
      former.config('SET', 'min-replicas-to-write', '1'),
  };

  test.each([...Object.keys(demote), 'is silent'] as (keyof typeof demote | 'is silent')[])(
    'after a failover calls are counted by the new primary, when the former one %s',
    async (former) => {
      const [first, second] = [await startRedis(), await startRedis()];
      const address = await startTcpProxy({ port: first.port });
      const environment = { ...LIMIT, REDIS_URL: `redis://127.0.0.1:${address.port}` };
      const api = await startTestApi({ environment, databaseUrl: one.databaseUrl, keys: one.keys });
      const [atFirst, atSecond] = [new Redis(first.url), new Redis(second.url)];
      /** A call is made, and some of this key are counted there. */
      const countsAt = async (primary: Redis) => {
        expect((await api.quote()).status).toBe(200);
        return (await primary.keys('rate:key_*')).length > 0;
      };
      try {
        await until(() => countsAt(atFirst), 'the first primary counts');
        address.leadTo(second.port);
        if (former === 'is silent') first.freeze();
        else await demote[former](atFirst);
        await until(() => countsAt(atSecond), 'the second primary counts');
      } finally {
        for (const admin of [atFirst, atSecond]) admin.disconnect();
        await api.close();
        await address.close();
        await Promise.all([first.close(), second.close()]);
      }
    },
  );

  // The last one: Redis does not come back.
  test('Redis killed in mid-window: counted in memory, at most one more window, no 500', async () => {
    expect(await statuses(one, 100, one.keys.test)).toEqual({ ok: 100, refused: 0 });
    await redis.close();
    const before = performance.now();
    expect(await one.quote()).toMatchObject({ status: 200, headers: { 'ratelimit-remaining': '99' } });
    expect(performance.now() - before).toBeLessThan(1_000);
    expect(await statuses(one, 150, one.keys.test)).toEqual({ ok: 99, refused: 51 });
    expect(await fallbacks(one)).toBeGreaterThan(0);
    expect(warnings(one)).not.toEqual([]);
    const trouble = 'counts rate limits for itself, because Redis does not (not connected)';
    const both = async () => (await troubles(one)).filter((said) => said === trouble).length === 2;
    await until(both, 'both write so for ops status');
  });
});
