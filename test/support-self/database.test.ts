import postgres from 'postgres';
import { createTestDatabase } from '../support/database';

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return [...(await sql.unsafe(text))];
  } finally {
    await sql.end({ timeout: 1 });
  }
}

test('gives many test files a migrated database of their own at the same time', async () => {
  const databases = await Promise.all(Array.from({ length: 6 }, () => createTestDatabase()));
  expect(new Set(databases.map(({ url }) => url)).size).toBe(6);
  const [first, second] = databases;
  await query(first!.url, `insert into partners (partner_id, name) values ('P000001', 'One')`);
  expect(await query(first!.url, 'select partner_id from partners')).toEqual([{ partner_id: 'P000001' }]);
  expect(await query(second!.url, 'select partner_id from partners')).toEqual([]);
  await Promise.all(databases.map((database) => database.close()));
});

test('drops a database that is still in use', async () => {
  const database = await createTestDatabase();
  const sql = postgres(database.url, { max: 1, onnotice: () => undefined });
  await sql`select 1`;
  await database.close();
  await expect(sql`select 1`).rejects.toThrow(/\w/);
  await sql.end({ timeout: 1 });
  await expect(query(database.url, 'select 1')).rejects.toMatchObject({ code: '3D000' });
});
