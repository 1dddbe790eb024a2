import postgres from 'postgres';
import { guardTransactions } from './lost-transactions';
import { serverSocket } from './server-socket';
import { textArray } from './text-array';

/**
 * Release of postgres.js that the repairs of this folder were written for. They use fields and an order of events that it does not
 * promise to keep, so package.json pins it; README.md says what to check before another takes its place.
 */
export const REPAIRED_RELEASE = '3.4.9';

export type Sql = postgres.Sql<Record<string, never>>;

/** What postgres.js is asked for, but for what the repairs decide. */
export type ClientOptions = Omit<
  postgres.Options<Record<string, never>>,
  'socket' | 'max_pipeline' | 'ssl' | 'fetch_types' | 'types'
> & {
  /** Milliseconds without a byte after which a connection is taken for dead; 0: never. */
  readonly quietMs: number;
  /** Known to postgres.js, missing from its types. */
  readonly onnotify?: (channel: string, payload: string) => void;
};

/**
 * Opens a client of postgres.js with every repair; it connects lazily. Nothing else in the service calls `postgres()`.
 * @throws when the URL asks for what TLS it cannot have (readServerTls).
 */
export function openClient(databaseUrl: string, { quietMs, ...options }: ClientOptions): Sql {
  const { url, socket } = serverSocket(databaseUrl, quietMs);
  const sql: Sql = postgres(url, {
    onnotice: () => undefined,
    ...options,
    socket,
    // Else each new connection asks for its array types, and nobody waits for the answer: a connection that is lost
    // meanwhile rejects a promise without a handler, which ends the process. The only arrays of this service are of
    // text.
    fetch_types: false,
    types: { textArray },
    // A `begin` that reaches a full pipeline is sent, but its connection is not set aside for it: others then use the open
    // transaction (porsager/postgres#1189). A pipeline without a bound is never full; callers bound what they ask for.
    max_pipeline: Number.POSITIVE_INFINITY,
  } as object);
  guardTransactions(sql);
  return sql;
}
