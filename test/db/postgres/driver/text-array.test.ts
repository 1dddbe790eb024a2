import { useDatabase } from '../../../support/database';

const database = useDatabase();
test.each([
  [[]],
  [['a']],
  [['a', '', ' ', 'null', 'NULL', null]],
  [['a,b', '{c}', '"', '\\', '\\"', "'", 'line\nfeed', 'ü€😀']],
])('text comes back from an array as it was sent: %j', async (texts) => {
  const [row] = await database.sql`select ${texts}::text[] as texts, cardinality(${texts}::text[]) as count`;
  expect(row).toEqual({ texts, count: texts.length });
});
