import { differentFunctions, migrateDatabase } from '../../../db/postgres/migrate';
import { useDatabase } from '../../support/database';

const database = useDatabase();
test('functions are what the files say; one that was changed by hand, or is missing, is found, and the next migration installs it again', async () => {
  const [row] = await database.sql<{ text: string }[]>`
    select pg_get_functiondef(oid) as text from pg_proc where proname = 'open_attempt_1'`;
  await database.sql.unsafe((row?.text ?? '').replace("'other_endpoint'", "'other'"));
  await database.sql`drop function delivery_queue_1`;
  expect((await differentFunctions(database.sql)).toSorted()).toEqual(['delivery_queue_1', 'open_attempt_1']);
  await migrateDatabase(database.url);
  expect(await differentFunctions(database.sql)).toEqual([]);
});
