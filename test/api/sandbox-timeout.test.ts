import { useApi } from '../support/api';
import { openDatabaseAt } from '../support/database';
import { until } from '../../testbed/until';

const TIMEOUT_MS = 4_000;
const api = useApi({ environment: { DATABASE_TIMEOUT_MS: String(TIMEOUT_MS) } });

const open = (quoteId: string, more: object = {}) =>
  api.call({ path: '/v1/sandbox/credit-applications', body: { service_quote_id: quoteId, ...more } });
const quoted = async () => (await api.quote()).body.data.service_quote_id as string;
const stored = (quoteId: string) =>
  api.database.sql<{ events: number }[]>`
    select sequence as events from credit_applications where quote_id = ${quoteId}`;

/** Sessions of the API that wait for a lock, or are in a transaction. */
const sessions = async (condition: string) =>
  (
    await api.database.sql.unsafe(
      `select 1 from pg_stat_activity where datname = current_database() and application_name like 'pfqs api%' and ${condition}`,
    )
  ).length;

test('a call that is answered 500, as it took too long, has stored nothing', async () => {
  const blocker = openDatabaseAt(api.databaseUrl, { poolSize: 2 });
  const lock = async (table: string) => {
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    let held: Promise<unknown> | undefined;
    await new Promise<void>((locked, failed) => {
      held = blocker.sql.begin(async (tx) => {
        await tx.unsafe(`lock table ${table} in exclusive mode`);
        locked();
        await released;
      });
      held.catch(failed);
    });
    return async () => {
      release();
      await held;
    };
  };
  const quoteId = await quoted();
  const [first, second] = [await lock('credit_applications'), await lock('notifications')];
  try {
    // Each statement waits for less than its own timeout, and both together for more.
    const beganAt = performance.now();
    const answer = open(quoteId, { story: 'completed' });
    await until(async () => (await sessions(`wait_event_type = 'Lock'`)) === 1, 'a wait for the first lock');
    await until(() => performance.now() - beganAt > TIMEOUT_MS * 0.6, 'most of the timeout');
    await first();
    expect((await answer).status).toBe(500);
  } finally {
    await second();
    await until(async () => (await sessions(`state <> 'idle'`)) === 0, 'the end of the transaction');
    await blocker.close();
  }
  expect(await stored(quoteId)).toEqual([]);
});

test('25 at once on one quote: 20 are stored and answered, and the others refused', async () => {
  const quoteId = await quoted();
  const answers = await Promise.all(Array.from({ length: 25 }, () => open(quoteId, { story: 'completed' })));
  const statuses = answers.map(({ status }) => status);
  expect(statuses.filter((status) => status === 201)).toHaveLength((await stored(quoteId)).length);
  // On a slow machine some have waited for too long.
  expect(statuses.filter((status) => ![201, 409, 429].includes(status))).toEqual([]);
  for (const { events } of await stored(quoteId)) expect(events).toBeGreaterThan(5);
});
