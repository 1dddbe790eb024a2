import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { withTimeout } from '../../timing/timing';
import type { Sql } from './driver/client';

/** Tells a waiting process that something has happened. It may be lost, as the process also sweeps. */
export interface Hint {
  readonly channel: string;
  readonly payload: string;
}

// Shortest time between two statements with hints, in milliseconds. Later hints share the second.
const GATHER_MS = 5;
/** Longest wait for one statement with hints, so that a lost connection does not block later ones. */
const SEND_TIMEOUT_MS = 5_000;

const SEND = `
  select pg_notify(channel, payload) from unnest($1::text[], $2::text[]) as h (channel, payload)`;

const takers = new WeakMap<object, (hint: Hint) => void>();

/**
 * Sends a hint to the processes that listen: at once or, through an open transaction, after its commit.
 * It never waits and never fails.
 *
 * The transaction itself does not NOTIFY, because Postgres commits transactions with a NOTIFY one after
 * the other, each with its disk write. Hints are sent in transactions that write nothing.
 * @param through the client or drizzle of a pool, or a transaction begun by that drizzle
 */
export function hint(through: object, one: Hint): void {
  const take = takers.get(through);
  if (take === undefined) throw new Error('a hint needs the pool, or a transaction that it has begun itself');
  take(one);
}

/** Lets `hint` send through a pool, and through the transactions that its drizzle begins. */
export function sendHintsOf(sql: Sql, db: PostgresJsDatabase) {
  const hints = createHintSender(sql);
  for (const pool of [sql, db]) takers.set(pool, hints.take);
  const begin = db.transaction.bind(db);
  // Hints of a transaction are sent after its commit, and dropped when it fails.
  db.transaction = async (work, options) => {
    const given: Hint[] = [];
    const result = await begin((tx) => {
      takers.set(tx, (one) => given.push(one));
      return work(tx);
    }, options);
    given.forEach(hints.take);
    return result;
  };
  return { flush: hints.flush };
}

function createHintSender(sql: Sql) {
  const gathered = new Map<string, Hint>();
  let sending: Promise<void> | undefined;
  let resting: NodeJS.Timeout | undefined;

  function send(): void {
    if (sending !== undefined || resting !== undefined || gathered.size === 0) return;
    const hints = [...gathered.values()];
    gathered.clear();
    const arrays = [hints.map(({ channel }) => channel), hints.map(({ payload }) => payload)];
    const sent = sql.unsafe(SEND, arrays as never[], { prepare: true });
    sending = withTimeout(sent, SEND_TIMEOUT_MS, 'hints').then(ended, ended);
  }

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
    take: (one: Hint): void => {
      gathered.set(`${one.channel} ${one.payload}`, one);
      send();
    },
    flush: async (): Promise<void> => {
      await sending;
      rested();
      await sending;
      clearTimeout(resting);
    },
  };
}
