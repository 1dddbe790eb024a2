import {
  findServiceKeysByHash,
  issueServiceKey,
  listServiceKeys,
  revokeServiceKey,
  rotateServiceKey,
  setServiceKeyState,
  hashKey,
} from '../../db/keys';
import { useApi } from '../support/api';
import { internalClient, type InternalClient } from '../support/internal-api';
import { refusal } from '../support/http-call';

const api = useApi();
let lender: InternalClient;
beforeAll(async () => {
  lender = await internalClient(api);
});

const BINDING = { lender: 'lender_b', environment: 'live' } as const;
const issue = (expiresInSeconds: number | null = null) =>
  issueServiceKey(api.database.db, { name: 'Lender A gateway', ...BINDING, expiresInSeconds });
const expire = (keyId: string) =>
  api.database
    .sql`update service_keys set expires_at = now() - interval '1 millisecond' where key_id = ${keyId}`;
/** 404 with a key that is accepted: there is no such application. */
const statusOf = async (key: string | null) =>
  (await lender.call({ method: 'GET', path: '/internal/v1/credit-applications/app_1', key })).status;

test('a key works as soon as it has been issued, and is stored as a hash and its last four', async () => {
  const { key, summary } = await issue();
  expect(key).toMatch(/^svc_[0-9A-Za-z]{32}$/);
  expect(await statusOf(key)).toBe(404);
  expect(summary).toMatchObject({ name: 'Lender A gateway', lastFour: key.slice(-4), state: 'active' });
  const rows = await api.database.sql`select k::text as "all" from service_keys k`;
  expect(JSON.stringify(rows)).not.toContain(key.slice(4, -4));
  expect(await findServiceKeysByHash(api.database.db, [hashKey(key)])).toEqual(
    new Map([[hashKey(key).toString('hex'), summary]]),
  );
});

test('no key, an unknown one and a partner’s key are 401, and all refusals of a key read the same', async () => {
  const texts = new Set<string>();
  for (const key of [null, `svc_${'A'.repeat(32)}`, api.keys.test, api.keys.live]) {
    const answer = await lender.call({ body: {}, key });
    expect(answer).toMatchObject(refusal(401, 'UNAUTHENTICATED'));
    expect(answer.headers['www-authenticate']).toBe('Bearer');
    if (key !== null) texts.add(answer.text);
  }
  expect(texts.size).toBe(1);
});

test('a service key opens nothing on the public listener', async () => {
  expect((await api.quote({}, { key: lender.key })).status).toBe(401);
});

test('health, readiness, metrics and the document need no key', async () => {
  for (const path of ['/health', '/ready', '/metrics', '/openapi.json']) {
    expect((await fetch(`http://127.0.0.1:${api.internalPort}${path}`)).status).toBe(200);
  }
});

test('an expired, an inactive and a revoked key are refused at once', async () => {
  const expiring = await issue(3_600);
  expect(await statusOf(expiring.key)).toBe(404);
  await expire(expiring.summary.keyId);
  expect(await statusOf(expiring.key)).toBe(401);

  const { key, summary } = await issue();
  await setServiceKeyState(api.database.db, summary.keyId, 'inactive');
  expect(await statusOf(key)).toBe(401);
  await setServiceKeyState(api.database.db, summary.keyId, 'active');
  expect(await statusOf(key)).toBe(404);
  expect(await revokeServiceKey(api.database.db, summary.keyId)).toMatchObject({ changed: true });
  expect(await statusOf(key)).toBe(401);
  await expect(setServiceKeyState(api.database.db, summary.keyId, 'active')).rejects.toMatchObject({
    reason: 'conflict',
  });
});

test('rotated, both keys work until the overlap has ended', async () => {
  const old = await issue();
  const { key, replaced } = await rotateServiceKey(api.database.db, {
    keyId: old.summary.keyId,
    overlapSeconds: 3_600,
  });
  expect([await statusOf(old.key), await statusOf(key)]).toEqual([404, 404]);
  await expire(old.summary.keyId);
  expect(await statusOf(old.key)).toBe(401);
  expect(await statusOf(key)).toBe(404);
  const successor = (await listServiceKeys(api.database.db)).at(-1);
  expect(successor).toMatchObject({ name: 'Lender A gateway', ...BINDING, keyId: replaced.replacedBy });
  await expect(rotateServiceKey(api.database.db, { keyId: replaced.keyId })).rejects.toMatchObject({
    reason: 'conflict',
  });
});

test.each([
  ...['', ' ', 'x'.repeat(121)].map((name) => [{ name }, 'invalid'] as const),
  ...['lender_z', '', "lender_a'"].map((of) => [{ lender: of }, 'not_found'] as const),
])('a key for %j is refused: %s', async (wanted, reason) => {
  const key = { name: 'x', ...BINDING, expiresInSeconds: null, ...wanted };
  await expect(issueServiceKey(api.database.db, key)).rejects.toMatchObject({ reason });
});
