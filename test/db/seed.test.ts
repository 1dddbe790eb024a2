import { listChanges } from '../../db/audit/change-log';
import { listProducts } from '../../db/catalogue/products';
import { revokeKey, findKeyByHash, hashKey } from '../../db/keys';
import { seedDatabase, seedDemo } from '../../dev/seed';
import type { DemoData } from '../../dev/stack';
import { checkProduct } from '../../domain/product-check';
import { useDatabase } from '../support/database';

const database = useDatabase({ poolSize: 2 });
let first: DemoData;

beforeAll(async () => {
  first = await seedDemo(database.url, undefined);
});

test('stores products that all pass the check of figures', async () => {
  const products = await listProducts(database.db, { limit: 1_000 });
  expect(products.length).toBeGreaterThan(25);
  for (const { definition, creditProduct } of products) {
    expect([creditProduct, definition && checkProduct(definition)]).toEqual([creditProduct, []]);
  }
});

test('changes nothing when it runs again, and keeps the keys', async () => {
  const before = await listChanges(database.db, { limit: 1_000 });
  const second = await seedDatabase(database, first);
  expect(second).toEqual(first);
  expect(await listChanges(database.db, { limit: 1_000 })).toEqual(before);
  expect((await listProducts(database.db, { limit: 1_000 })).every(({ version }) => version === 1)).toBe(
    true,
  );
});

test('replaces a previous key that has been revoked, and only that', async () => {
  const record = await findKeyByHash(database.sql, hashKey(first.apiKeys.test));
  await revokeKey(database.db, record?.keyId ?? '');
  const second = await seedDatabase(database, first);
  expect(second.apiKeys.live).toBe(first.apiKeys.live);
  expect(second.apiKeys.test).not.toBe(first.apiKeys.test);
  first = second;
});
