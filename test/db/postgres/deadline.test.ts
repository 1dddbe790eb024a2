import { setTimeout as sleep } from 'node:timers/promises';
import { withDeadline } from '../../../db/postgres/deadline';
import { openTestDatabase, type OpenTestDatabase } from '../../support/database';

let database: OpenTestDatabase;
beforeAll(async () => {
  database = await openTestDatabase({ poolSize: 1 });
});
afterAll(() => database.close());

test('a statement that was sent and given up does not leave its answer to the next one', async () => {
  const { sql } = database;
  // The first statement of a connection is not followed by others; that one was.
  await sql`select 1`;
  await sql`select 1`;
  const slow = sql`select pg_sleep(0.4)`.execute();
  await sleep(50);
  const givenUp = sql`select 'given up' as answer`.execute();
  const next = sql`select 'next' as answer`.execute();
  const last = sql`select 'last' as answer`.execute();
  await expect(withDeadline(givenUp, 100, 'it')).rejects.toThrow('no answer from the database within 100 ms');
  await slow;
  expect([...(await next), ...(await last)]).toEqual([{ answer: 'next' }, { answer: 'last' }]);
});

test('a statement that waits for a connection leaves the queue when it is given up', async () => {
  const { sql } = database;
  await sql`create table counted (n int)`;
  await sql.begin(async (tx) => {
    await tx`select 1`;
    const waiting = sql`insert into counted values (1)`;
    await expect(withDeadline(waiting, 50, 'it')).rejects.toThrow('no answer from the database within 50 ms');
  });
  expect(await sql`select n from counted`).toHaveLength(0);
});
