import { setTimeout as sleep } from 'node:timers/promises';
import { startLoop, withTimeout } from '../../timing/timing';
import { useDatabase } from '../support/database';

/** Far beyond the test's own time limit: whoever waits for it has failed. */
const NEVER_MS = 3_600_000;

function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open: () => open(), opened };
}

type Round = (wake: () => void) => 'again' | 'done' | void;
const nothing = () => undefined;
const wakes: Round = (wake) => wake();
const fails: Round = (wake) => {
  wake();
  throw new Error('no database');
};

it.each<[string, Round, number, number]>([
  ['begins its first round at once, and no other by itself', nothing, 1, 0],
  ['runs another round when it was woken during one', wakes, 2, 0],
  ['does not pause after a round that asks for the next', () => 'again', 2, 0],
  ['goes on after a round that failed', fails, 2, 1],
  ['begins no round after the one that was the last', (wake) => (wake(), 'done'), 1, 0],
])('%s', async (_what, first, rounds, faults) => {
  const errors: unknown[] = [];
  let begun = 0;
  const loop = startLoop({
    // It is woken through the loop itself, which is there from the second turn on.
    round: async () => {
      await Promise.resolve();
      begun += 1;
      return begun === 1 ? first(() => loop.wake()) : undefined;
    },
    everyMs: NEVER_MS,
    onError: (error) => void errors.push(error),
  });
  for (let turns = 0; turns < 5; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  expect([begun, errors.length]).toEqual([rounds, faults]);
  if (first === nothing) {
    loop.wake();
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun).toBe(2);
  }
  await loop.stop();
});

it('tells the round under way of the stop, and waits for its end', async () => {
  const held = gate();
  const begun = gate();
  let toldToStop = false;
  let ended = false;
  const loop = startLoop({
    round: async (stopped) => {
      begun.open();
      await held.opened;
      toldToStop = stopped();
      ended = true;
      return 'again';
    },
    everyMs: NEVER_MS,
    onError: (error) => {
      throw error;
    },
  });
  await begun.opened;
  const stopping = loop.stop();
  expect(ended).toBe(false);
  held.open();
  await stopping;
  expect([toldToStop, ended]).toEqual([true, true]);
});

const late = () => new Error('late');
const never = new Promise<never>(() => undefined);

it('throws what `late` makes when time is up', async () => {
  await expect(withTimeout(never, 1, late)).rejects.toThrow('late');
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
