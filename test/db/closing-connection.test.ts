import { connectDatabase, type Database } from '../../db/connect';
import { createTestDatabase, type TestDatabase } from '../support/database';

const STATEMENT_TIMEOUT_MS = 100;
/** After that a silent connection is closed: db/connect.ts. */
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
  await database.sql`select 1`;
  const made = new Promise((resolve) => {
    const make = () => {
      database.sql`select 1`.then(
        () => resolve('answered'),
        () => resolve('refused'),
      );
    };
    setTimeout(make, QUIET_MS + 50);
  });
  // A process that was frozen finds both timers due at once: first its connection is given up, then it is used.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, QUIET_MS + 500);
  expect(await made).toMatch(/answered|refused/);
  await expect(database.sql`select 2 as two`).resolves.toMatchObject([{ two: 2 }]);
}, 15_000);
