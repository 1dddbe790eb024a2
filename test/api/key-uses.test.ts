import { createKeyUses } from '../../api/catalogue';
import { lastUses } from '../../db/keys';
import { useDatabase } from '../support/database';
import { startTestApi } from '../support/api';
import { until } from '../support/delivery';
import { opsJson } from '../ops/run';

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

test('what cannot be written is left to the next time', async () => {
  let isAway = true;
  const sql = new Proxy(database.sql, {
    get: (target, name) => {
      if (isAway && name === 'unsafe') throw new Error('away');
      return Reflect.get(target, name) as unknown;
    },
  });
  const uses = createKeyUses(sql, () => NOON);
  uses.used('key_3');
  await expect(uses.write()).rejects.toThrow('away');
  isAway = false;
  await uses.write();
  expect((await lastUses(database.sql, ['key_3'])).size).toBe(1);
});

test('an accepted call shows in keys list within seconds; a refused one does not', async () => {
  const api = await startTestApi();
  try {
    const list = () => opsJson(api.databaseUrl, 'keys', 'list');
    await api.call({ headers: { authorization: `Bearer sk_live_${'0'.repeat(32)}` } });
    expect((await list()).every((one: { last_used_at: unknown }) => one.last_used_at === null)).toBe(true);
    await api.call({ method: 'GET', path: '/v1/notifications' });
    const used = async () =>
      (await list()).filter((one: { last_used_at: unknown }) => one.last_used_at !== null).length === 1;
    await until(used, 'its use is written', 25_000);
  } finally {
    await api.close();
  }
});
