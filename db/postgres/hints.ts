import { withTimeout } from '../../timing/timeout';
import type { Sql } from './driver/client';

/** Something that a process may wait for has happened. Only a hint: whoever waits looks into the tables, now and then without one too. */
export interface Hint {
  /** A channel of LISTEN. */
  readonly channel: string;
  /** Equal hints are sent once. */
  readonly payload: string;
}

/** Shortest time between two statements with hints, in milliseconds: what comes meanwhile goes together. */
const GATHER_MS = 5;
/** Longest wait for one statement with hints: after a connection that was lost in an odd moment, later hints go all the same. */
const SEND_DEADLINE_MS = 5_000;

const SEND = `
  select pg_notify(channel, payload) from unnest($1::text[], $2::text[]) as h (channel, payload)`;

/** Where hints go that are given to a database, or to an open transaction of it. */
const takers = new WeakMap<object, (hint: Hint) => void>();

/**
 * Gives a hint to whoever listens: at once, or, through an open transaction, after its commit. It never waits and never fails: a
 * hint that is lost costs those who wait for it the time until they look of their own accord.
 *
 * A NOTIFY inside a transaction makes Postgres commit one such transaction after the other, each with its disk write: the lock is
 * that of the whole server's queue. Hints go in transactions that write nothing, and those commit without a disk write.
 * @param through a pool's client or drizzle, or a transaction that was begun by that drizzle.
 */
export function hint(through: object, one: Hint): void {
  const take = takers.get(through);
  if (take === undefined) throw new Error('a hint needs the pool, or a transaction that it has begun itself');
  take(one);
}

/** Has the hints that are given through a transaction sent once it has committed; those of one that has not are dropped. */
export async function hintAfterCommit<T>(
  pool: object,
  transaction: (begun: (tx: object) => void) => Promise<T>,
): Promise<T> {
  const given: Hint[] = [];
  const result = await transaction((tx) => takers.set(tx, (one) => given.push(one)));
  for (const one of given) hint(pool, one);
  return result;
}

interface HintSender {
  /** Hints given through this object are sent by the pool. */
  takeFrom(pool: object): void;
  /** Sends what has been gathered; resolves when it is sent, or cannot be. */
  flush(): Promise<void>;
}

/** Sends the hints of a pool: the first at once, so that nobody waits longer for the gathering. */
export function createHintSender(sql: Sql): HintSender {
  const gathered = new Map<string, Hint>();
  let sending: Promise<void> | undefined;
  let resting: NodeJS.Timeout | undefined;

  function send(): void {
    if (sending !== undefined || resting !== undefined || gathered.size === 0) return;
    const hints = [...gathered.values()];
    gathered.clear();
    const arrays = [hints.map(({ channel }) => channel), hints.map(({ payload }) => payload)];
    const sent = sql.unsafe(SEND, arrays as never[], { prepare: true });
    sending = withTimeout(sent, SEND_DEADLINE_MS, 'hints').then(ended, ended);
  }

  /** Also after a failure: what the tables say is found without the hint. */
  function ended(): void {
    sending = undefined;
    resting = setTimeout(rested, GATHER_MS);
  }

  function rested(): void {
    clearTimeout(resting);
    resting = undefined;
    send();
  }

  return {
    takeFrom: (pool) =>
      void takers.set(pool, (one) => {
        gathered.set(`${one.channel} ${one.payload}`, one);
        send();
      }),
    async flush() {
      await sending;
      rested();
      await sending;
      clearTimeout(resting);
    },
  };
}
