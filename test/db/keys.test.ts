import { apiKeyChanges, generateKey, issueKey } from '../../db/keys';
import { createPartner } from '../../db/catalogue/partners';
import { useDatabase } from '../support/database';
import { setServiceClock } from '../../testbed/notifications';

const database = useDatabase();

beforeAll(async () => {
  // The database's clock stands still until a test moves it.
  await setClock('2026-11-21T12:00:00Z');
  await createPartner(database.db, { partnerId: 'P100001', name: 'Example' });
});

const setClock = (at: string) => setServiceClock(database, at);
const issue = (expiresInSeconds: number | null = null) =>
  issueKey(database.db, { partnerId: 'P100001', environment: 'live', expiresInSeconds });

test('makes keys of 32 random base62 characters, and says where they work', () => {
  const keys = Array.from({ length: 200 }, () => generateKey('sandbox'));
  expect(new Set(keys).size).toBe(200);
  for (const key of keys) expect(key).toMatch(/^sk_test_[0-9A-Za-z]{32}$/);
  expect(new Set(keys.join('').replaceAll('sk_test_', '')).size).toBe(62);
  expect(generateKey('live')).toMatch(/^sk_live_[0-9A-Za-z]{32}$/);
});

test.each([
  ['no overlap ends the old key at once', null, 0, '2026-11-21T12:00:00Z'],
  ['an overlap never lengthens the life of the old key', 60, undefined, '2026-11-21T12:01:00Z'],
])('rotates: %s', async (_, life, overlapSeconds, end) => {
  const old = await issue(life ?? undefined);
  const { replaced } = await apiKeyChanges.rotate(database.db, { keyId: old.summary.keyId, overlapSeconds });
  expect(replaced).toMatchObject({ expiresAt: new Date(end), expired: overlapSeconds === 0 });
});

test('refuses to rotate what is unknown, replaced, off, revoked or expired, or for longer than 7 days', async () => {
  const rotate = (keyId: string, overlapSeconds?: number) =>
    apiKeyChanges.rotate(database.db, { keyId, ...(overlapSeconds !== undefined && { overlapSeconds }) });
  await expect(rotate('key_unknown')).rejects.toMatchObject({ kind: 'not_found' });
  const { summary } = await issue();
  await expect(rotate(summary.keyId, 7 * 86_400 + 1)).rejects.toMatchObject({ kind: 'invalid' });
  await expect(rotate(summary.keyId, -1)).rejects.toMatchObject({ kind: 'invalid' });
  await rotate(summary.keyId, 7 * 86_400);
  await expect(rotate(summary.keyId)).rejects.toMatchObject({ kind: 'conflict' });
  const off = await issue();
  await apiKeyChanges.setState(database.db, off.summary.keyId, 'inactive');
  await expect(rotate(off.summary.keyId)).rejects.toThrow('is inactive');
  const expiring = await issue(60);
  await setClock('2026-11-21T12:01:00Z');
  await expect(rotate(expiring.summary.keyId)).rejects.toThrow('has expired');
  await setClock('2026-11-21T12:00:00Z');
});

test('lets only one of two simultaneous rotations through', async () => {
  const { summary } = await issue();
  const rotate = () => apiKeyChanges.rotate(database.db, { keyId: summary.keyId });
  const outcomes = await Promise.allSettled([rotate(), rotate()]);
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
});

test('refuses a key for an unknown partner, or one that has expired before it begins', async () => {
  const wanted = { partnerId: 'P999999', environment: 'live', expiresInSeconds: null } as const;
  await expect(issueKey(database.db, wanted)).rejects.toMatchObject({ kind: 'not_found' });
  await expect(issue(0)).rejects.toMatchObject({ kind: 'invalid' });
});

test('gives the next free partner id, also to two that ask at once', async () => {
  const create = () => createPartner(database.db, { partnerId: null, name: 'Next' });
  const made = await Promise.all([create(), create()]);
  expect(made.map(({ partnerId }) => partnerId).toSorted()).toEqual(['P100002', 'P100003']);
});
