import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { withTimeout } from '../../timing/timing';
import { standStill } from '../../testbed/until';
import { useDatabase } from '../support/database';

/** Far beyond the test's own time limit: whoever waits for it has failed. */
const NEVER_MS = 3_600_000;

const late = () => new Error('late');
const never = new Promise<never>(() => undefined);

it('throws what `late` makes when time is up', async () => {
  await expect(withTimeout(never, 1, late)).rejects.toThrow('late');
});

it('hears an answer that came while this process stood still', async () => {
  const reading = withTimeout(readFile(__filename, 'utf8'), 500, late);
  standStill(700);
  await expect(reading).resolves.toContain('stood still');
});

it('waits once more at most, however long this process stood still', async () => {
  const waiting = withTimeout(never, 100, late);
  standStill(1_000);
  const movesAt = performance.now();
  await expect(waiting).rejects.toThrow('late');
  expect(performance.now() - movesAt).toBeLessThan(500);
});

it('throws the reason of the signal, also when it had been aborted before', async () => {
  const controller = new AbortController();
  const waiting = withTimeout(never, NEVER_MS, late, controller.signal);
  controller.abort(new Error('stopped'));
  await expect(waiting).rejects.toThrow('stopped');
  await expect(withTimeout(Promise.resolve(7), NEVER_MS, late, controller.signal)).rejects.toThrow('stopped');
});

it('ignores a failure that comes after the deadline', async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  try {
    let fail: (error: Error) => void = () => undefined;
    const work = new Promise<never>((_resolve, reject) => (fail = reject));
    await expect(withTimeout(work, 1, late)).rejects.toThrow('late');
    fail(new Error('too late'));
    await sleep(20);
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
  }
});

describe('with a query of postgres.js', () => {
  const database = useDatabase({ poolSize: 1 });

  it('a statement that was sent and given up does not leave its answer to the next one', async () => {
    const { sql } = database;
    // The first statement of a connection is not followed by others; that one was.
    await sql`select 1`;
    await sql`select 1`;
    const slow = sql`select pg_sleep(0.4)`.execute();
    await sleep(50);
    const givenUp = sql`select 'given up' as answer`.execute();
    const next = sql`select 'next' as answer`.execute();
    const last = sql`select 'last' as answer`.execute();
    await expect(withTimeout(givenUp, 100, 'it')).rejects.toThrow('it: no answer within 100 ms');
    await slow;
    expect([...(await next), ...(await last)]).toEqual([{ answer: 'next' }, { answer: 'last' }]);
  });

  it('a statement that waits for a connection leaves the queue when it is given up', async () => {
    const { sql } = database;
    await sql`create table counted (n int)`;
    await sql.begin(async (tx) => {
      await tx`select 1`;
      const waiting = sql`insert into counted values (1)`;
      await expect(withTimeout(waiting, 50, 'it')).rejects.toThrow('it: no answer within 50 ms');
    });
    expect(await sql`select n from counted`).toHaveLength(0);
  });
});
