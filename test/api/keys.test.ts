import { setTimeout as pause } from 'node:timers/promises';
import { createKeyUses } from '../../api/catalogue';
import { switchPartner } from '../../db/catalogue/partners';
import { apiKeyChanges, issueKey, lastUses } from '../../db/keys';
import { opsJson } from '../ops/run';
import { startTestApi, type TestApi, useApi } from '../support/api';
import { advanceServiceClock, setServiceClock } from '../../testbed/notifications';
import { PARTNER_ID } from '../../testbed/values';
import { useDatabase } from '../support/database';
import { until } from '../../testbed/until';
import { addMerchant } from '../support/merchants';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy';

/** A second API process's worth: its way to Postgres can be frozen. */
let other: TestApi;
let proxy: TcpProxy;
// Before the database is dropped.
afterAll(async () => {
  await other.close();
  await proxy.close();
});
const api = useApi();
/** Its keys make these two calls, long before the last test looks which of them was noted. */
const calledBefore = useApi();
beforeAll(async () => {
  await calledBefore.call({ headers: { authorization: `Bearer sk_live_${'0'.repeat(32)}` } });
  await calledBefore.get('/v1/notifications');
});

async function newKey(expiresInSeconds: number | null = null) {
  const wanted = { partnerId: PARTNER_ID, environment: 'sandbox', expiresInSeconds } as const;
  const { key, summary } = await issueKey(api.database.db, wanted);
  await heardOf(key);
  return { key, keyId: summary.keyId };
}

/** The change feed tells of a new key within a moment; a call may come sooner. */
const heardOf = (key: string, by: TestApi = api) =>
  until(async () => (await statusOf(key, by)) !== 401, 'the new key is known', 10_000);

const statusOf = async (key: string, of: TestApi = api) => (await of.quote({}, { key })).status;

/** Milliseconds until the last call that does not see it, asking without pause. */
async function timeUntil(seen: () => Promise<boolean>): Promise<number> {
  const start = performance.now();
  let taken = 0;
  for (let made = 0; !(await seen()); made = performance.now() - start) {
    taken = made;
    if (taken > 5_000) throw new Error('it is not seen after 5 s');
  }
  return taken;
}
const timeToRefusal = (of: TestApi, key: string) => timeUntil(async () => (await statusOf(key, of)) === 401);

test('an inactive key is refused until it is active again', async () => {
  const { key, keyId } = await newKey();
  await apiKeyChanges.setState(api.database.db, keyId, 'inactive');
  await timeToRefusal(api, key);
  await apiKeyChanges.setState(api.database.db, keyId, 'active');
  await heardOf(key);
  expect(await statusOf(key)).toBe(200);
});

test("an inactive partner's keys are refused", async () => {
  await switchPartner(api.database.db, PARTNER_ID, { state: 'inactive' });
  await timeToRefusal(api, api.keys.test);
  expect(await statusOf(api.keys.live)).toBe(401);
  await switchPartner(api.database.db, PARTNER_ID, { state: 'active' });
  await heardOf(api.keys.test);
  expect(await statusOf(api.keys.test)).toBe(200);
});

test('an expired key is refused; rotation lets the old key live for the overlap and no longer', async () => {
  const expiring = await newKey(3);
  const { key, keyId } = await newKey();
  const rotated = await apiKeyChanges.rotate(api.database.db, { keyId, overlapSeconds: 3 });
  await heardOf(rotated.key);
  const all = () => Promise.all([expiring.key, key, rotated.key].map((one) => statusOf(one)));
  expect(await all()).toEqual([200, 200, 200]);
  await pause(3_200);
  expect(await all()).toEqual([401, 401, 200]);
});

test.each([-600, 600])(
  'keys end by the clock of the database, which is %d seconds ahead of this machine',
  async (seconds) => {
    await advanceServiceClock(api.database, seconds);
    try {
      const short = await newKey(60);
      const { key, keyId } = await newKey();
      await apiKeyChanges.rotate(api.database.db, { keyId, overlapSeconds: 0 });
      expect(await timeToRefusal(api, key)).toBeLessThan(1_000);
      expect(await statusOf(short.key)).toBe(200);
    } finally {
      await setServiceClock(api.database, null);
    }
  },
);

describe('two API processes', () => {
  beforeAll(async () => {
    const address = new URL(api.databaseUrl);
    proxy = await startTcpProxy({ port: Number(address.port) });
    // Only the feed goes through the proxy: the pool must still reach Postgres, as it would when one socket hangs.
    address.port = String(proxy.port);
    other = await startTestApi({ databaseUrl: api.databaseUrl, listenUrl: address.href, keys: api.keys });
  });

  test('a revocation is effective on both within a second, though one hears nothing any more', async () => {
    const { key, keyId } = await newKey();
    await pause(300);
    expect([await statusOf(key, api), await statusOf(key, other)]).toEqual([200, 200]);
    // The listening connection of the second is held still: it stays open and carries nothing.
    proxy.freeze();
    await apiKeyChanges.revoke(api.database.db, keyId);
    const [mine, theirs] = await Promise.all([timeToRefusal(api, key), timeToRefusal(other, key)]);
    expect(mine).toBeLessThan(1_000);
    expect(theirs).toBeLessThan(1_000);
    proxy.unfreeze();
    expect(await statusOf(key, other)).toBe(401);
    expect([0, 1]).toContain(await other.metric('pfqs_catalogue_trusted'));
  });

  test('a changed price is quoted by both within a second, though one hears nothing any more', async () => {
    const merchant = 'M7777001';
    await addMerchant(api.database, merchant, { products: [{ creditProduct: 'Classic' }] });
    const apr = async (of: TestApi): Promise<string> =>
      (await of.quote({ merchant_id: merchant })).body.data.products[0].apr;
    /** The old APR must not come back. */
    const timeTo = async (expected: string, of: TestApi): Promise<number> => {
      const taken = await timeUntil(async () => (await apr(of)) === expected);
      for (let again = 0; again < 50; again += 1) expect(await apr(of)).toBe(expected);
      return taken;
    };
    expect([await apr(api), await apr(other)]).toEqual(['9.9% Fixed', '9.9% Fixed']);
    proxy.freeze();
    await api.database.sql`update product_versions set apr_basis_points = 1490 where product_id in
      (select product_id from products where merchant_id = ${merchant})`;
    const [mine, theirs] = await Promise.all([timeTo('14.9% Fixed', api), timeTo('14.9% Fixed', other)]);
    expect(mine).toBeLessThan(1_000);
    expect(theirs).toBeLessThan(1_000);
    proxy.unfreeze();
    expect(await apr(other)).toBe('14.9% Fixed');
  });

  test('memory is trusted again after the connection has been cut', async () => {
    proxy.cut();
    await pause(50);
    const trusted = async () => (await other.metric('pfqs_catalogue_trusted')) === 1;
    await until(trusted, 'memory is trusted again', 6_000);
    const { key, keyId } = await newKey();
    await heardOf(key, other);
    expect(await statusOf(key, other)).toBe(200);
    await apiKeyChanges.revoke(api.database.db, keyId);
    expect(await timeToRefusal(other, key)).toBeLessThan(1_000);
  });
});

describe('when a key was last used', () => {
  const database = useDatabase();
  const HOUR = 3_600_000;
  const NOON = Date.parse('2026-11-22T12:00:00Z');

  test('a key is written once an hour, to the hour, and never earlier than it was', async () => {
    let now = NOON + 25 * 60_000;
    const uses = createKeyUses(database.sql, () => now);
    const rows = async () => [...(await database.sql`select xmin::text as written from key_uses`)];
    uses.used('key_1');
    await uses.write();
    const first = await rows();
    expect(await lastUses(database.sql, ['key_1', 'key_2'])).toEqual(new Map([['key_1', new Date(NOON)]]));
    uses.used('key_1');
    await uses.write();
    expect(await rows()).toEqual(first);
    // Another process wrote it before.
    const behind = createKeyUses(database.sql, () => NOON - HOUR);
    behind.used('key_1');
    await behind.write();
    expect(await rows()).toEqual(first);
    now += HOUR;
    uses.used('key_1');
    await uses.write();
    expect(await lastUses(database.sql, ['key_1'])).toEqual(new Map([['key_1', new Date(NOON + HOUR)]]));
  });

  test('an accepted call shows in keys list within seconds; a refused one does not', async () => {
    const used = async () => {
      const keys: { last_used_at: unknown }[] = await opsJson(calledBefore.databaseUrl, 'keys', 'list');
      return keys.filter((one) => one.last_used_at !== null).length;
    };
    await until(async () => (await used()) > 0, 'its use is written', 25_000);
    expect(await used()).toBe(1);
  });
});
