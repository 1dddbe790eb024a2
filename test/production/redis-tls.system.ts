import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { goodQuote } from '../../testbed/values';
import { startApiProcess } from '../support/api-process';
import { openTestDatabase, type OpenTestDatabase } from '../support/database';
import { until } from '../../testbed/until';
import { fileNeeds } from '../support/needs';
import { addPartner } from '../support/partner-events';
import { startRedis, type TestRedis } from '../support/redis';
import { runDirectory } from '../../testbed/temporary-directory';
import { createTestTls } from '../../testbed/tls';

fileNeeds('Redis');

/** A Redis that demands TLS and a password, whose authority is named as Node names it. */
const password = randomBytes(24).toString('hex');
const directory = runDirectory('redis-tls');
let redis: TestRedis;
let database: OpenTestDatabase;
let caFile: string;
let key: string;

beforeAll(async () => {
  const tls = await createTestTls();
  caFile = join(directory, 'ca.pem');
  await writeFile(caFile, tls.ca);
  redis = await startRedis({ password, tls });
  database = await openTestDatabase();
  ({ test: key } = await addPartner(database, goodQuote.partner_id));
});

afterAll(async () => {
  await redis?.close();
  await database?.close();
});

/** Four calls of a key that may make a thousand a minute. @param logged waits until the process has logged this. */
async function callsOf(environment: Record<string, string>, logged: RegExp = /listening/) {
  const api = await startApiProcess({
    databaseUrl: database.url,
    environment: { RATE_LIMIT_PER_MINUTE: '1000', ...environment },
  });
  const quote = async () => (await api.call({ key, body: goodQuote })).status;
  try {
    await until(async () => (await quote()) === 200, 'the key is known');
    const statuses: number[] = [];
    for (let nth = 0; nth < 4; nth += 1) statuses.push(await quote());
    // What it logs is written at its leisure.
    await until(() => logged.test(api.output()), `logs ${logged}`);
    return { statuses, fallbacks: await api.metric('pfqs_rate_limit_fallback_total'), log: api.output() };
  } finally {
    await api.close();
  }
}

test('calls are counted in it over rediss:// with its password', async () => {
  const { statuses, log } = await callsOf({ REDIS_URL: redis.url, NODE_EXTRA_CA_CERTS: caFile });
  expect(statuses).toEqual([200, 200, 200, 200]);
  expect(log).not.toContain(password);
  const look = new Redis(redis.url, { tls: { ca: await readFile(caFile) } });
  try {
    expect(await look.dbsize()).toBeGreaterThan(0);
  } finally {
    look.disconnect();
  }
});

test.each([
  [
    'whose authority is not known',
    () => ({ REDIS_URL: redis.url }),
    /self-signed certificate|unable to verify/,
  ],
  [
    'without the password',
    () => ({ REDIS_URL: redis.url.replace(`:${password}@`, ''), NODE_EXTRA_CA_CERTS: caFile }),
    /NOAUTH/,
  ],
])(
  'a Redis %s is not used: the log says why, and calls are answered',
  async (_how, environment, why) => {
    const { statuses, fallbacks } = await callsOf(environment(), why);
    expect(statuses).toEqual([200, 200, 200, 200]);
    expect(fallbacks).toBeGreaterThan(0);
  },
  120_000,
);
