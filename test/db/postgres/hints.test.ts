import { hint } from '../../../db/postgres/hints';
import { openDatabaseAt, useDatabase } from '../../support/database';
import { until } from '../../../testbed/until';

const database = useDatabase();
let heard: string[];

const channel = 'waiting';
beforeAll(() => database.sql.listen(channel, (payload) => heard.push(payload)));
beforeEach(() => (heard = []));

/** Postgres delivers in the order of commits: when this one is heard, no earlier one is still to come. */
async function heardSoFar(): Promise<string[]> {
  await database.sql`select pg_notify(${channel}, 'last')`;
  await until(() => heard.includes('last'), 'the last one');
  return heard.filter((payload) => payload !== 'last');
}

test('a hint given through a transaction follows its commit', async () => {
  await database.db.transaction(async (tx) => {
    hint(tx, { channel, payload: 'one' });
    expect(await heardSoFar()).toEqual([]);
  });
  await until(() => heard.includes('one'), 'the hint');
});

test('a transaction that is rolled back gives none', async () => {
  const rolledBack = database.db.transaction(async (tx) => {
    hint(tx, { channel, payload: 'never' });
    throw new Error('changed its mind');
  });
  await expect(rolledBack).rejects.toThrow('changed its mind');
  hint(database.db, { channel, payload: 'next' });
  await until(() => heard.includes('next'), 'the next hint');
  expect(heard).toEqual(['next']);
});

test('one that cannot be sent fails nobody, and later ones go', async () => {
  await database.sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and query not ilike 'listen%'`;
  // Refused by Postgres: a payload has less than 8,000 bytes.
  hint(database.sql, { channel, payload: 'x'.repeat(9_000) });
  hint(database.sql, { channel, payload: 'after' });
  await until(() => heard.includes('after'), 'the later hint');
});

test('the last ones go before the pool is closed', async () => {
  const other = openDatabaseAt(database.url);
  hint(other.db, { channel, payload: 'first' });
  hint(other.db, { channel, payload: 'second' });
  await other.close();
  await until(() => heard.length === 2, 'both');
});
