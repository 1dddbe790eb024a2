import { connectDatabase, type Database } from '../../../db/postgres/connect';
import { createTestDatabase, type TestDatabase } from '../../support/database';
import { statementAfterFreeze } from '../../support/frozen-process';

const STATEMENT_TIMEOUT_MS = 100;
/** After that a silent connection is closed: db/postgres/connect.ts. */
const QUIET_MS = STATEMENT_TIMEOUT_MS + 2_000;
let clone: TestDatabase;
let database: Database;

beforeAll(async () => {
  clone = await createTestDatabase();
  database = connectDatabase({
    url: clone.url,
    poolSize: 1,
    applicationName: 'test',
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
});
afterAll(async () => {
  await database.close();
  await clone.close();
});

test('a statement made while its connection is being closed is not lost', async () => {
  expect(await statementAfterFreeze(database.sql, QUIET_MS)).toMatch(/answered|refused/);
  await expect(database.sql`select 2 as two`).resolves.toMatchObject([{ two: 2 }]);
}, 15_000);
