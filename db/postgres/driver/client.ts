import postgres from 'postgres';
import { serverSocket } from './server-socket';

// The repairs of this folder depend on internals of postgres.js, so package.json pins its release.
// README.md says what to check before a newer one is used.

export type Sql = postgres.Sql<Record<string, never>>;

type ClientOptions = Omit<
  postgres.Options<Record<string, never>>,
  'socket' | 'max_pipeline' | 'ssl' | 'fetch_types' | 'types'
> & {
  /** After this time without a byte of an answer a connection counts as dead, in milliseconds; 0: never. */
  readonly quietMs: number;
  readonly onnotify?: (channel: string, payload: string) => void;
};

const ELEMENT = /"((?:[^"\\]|\\.)*)"|([^{},]+)/gs;

const textArray = {
  to: 1009,
  from: [1009],
  serialize: (texts: readonly (string | null)[]): string =>
    `{${texts.map((text) => (text === null ? 'null' : `"${text.replace(/["\\]/g, '\\$&')}"`)).join(',')}}`,
  parse: (literal: string): (string | null)[] =>
    [...literal.matchAll(ELEMENT)].map(([, quoted, bare]) =>
      bare === undefined ? (quoted ?? '').replace(/\\(.)/gs, '$1') : bare === 'NULL' ? null : bare,
    ),
};

/**
 * What statements of this service and postgres.js rely on, whatever a server, database or login has as its default: bytea
 * is parsed as hex and a day as `2026-01-31`, a backslash in quotes is one, tables are found by their names alone, and a
 * transaction sees what others have committed meanwhile. A number has all its digits, and a pool keeps its idle connections:
 * one that the server ends as a statement comes loses it.
 */
const SESSION = {
  array_nulls: 'on',
  bytea_output: 'hex',
  default_transaction_isolation: 'read committed',
  extra_float_digits: 1,
  idle_session_timeout: 0,
  row_security: 'on',
  search_path: 'public',
  standard_conforming_strings: 'on',
  DateStyle: 'ISO',
} as const;

/**
 * Opens a lazy client of postgres.js with every repair. Nothing else calls `postgres()`.
 * @throws for a bad URL or bad TLS parameters
 */
export function openClient(databaseUrl: string, { quietMs, ...options }: ClientOptions): Sql {
  const { url, socket } = serverSocket(databaseUrl, quietMs);
  const sql: Sql = postgres(url, {
    onnotice: () => undefined,
    // In seconds. Node then sends ten probes, one a second: so soon are idle connections to a host that is gone ended.
    keep_alive: 5,
    ...options,
    // As text, because postgres.js leaves out a 0.
    connection: Object.fromEntries(
      Object.entries({ ...SESSION, ...options.connection }).map(([name, value]) => [name, String(value)]),
    ),
    socket,
    // Otherwise each new connection asks for its array types, and when it is lost meanwhile, a promise
    // without a handler rejects and ends the process. This service has arrays of text alone.
    fetch_types: false,
    types: { textArray },
    // A `begin` that reaches a full pipeline is sent, but its connection is not set aside, and others
    // use the open transaction (porsager/postgres#1189). An unbounded pipeline is never full.
    max_pipeline: Number.POSITIVE_INFINITY,
  } as object);
  guardTransactions(sql);
  return sql;
}

interface QueryInside {
  handler: (query: unknown) => void;
  reject: (error: unknown) => void;
}

interface Loss {
  lost: boolean;
}

type Callback = (tx: Sql) => unknown;

/** Codes after which the connection is lost: of postgres.js and of Postgres (57P01 to 57P03). */
const GONE = /^(CONNECTION_(CLOSED|DESTROYED|ENDED)|ECONNRESET|EPIPE|57P0[1-3])$/;

// Keeps a transaction from using its connection once that is lost. postgres.js 3.4.9 rejects `begin`
// then, but lets the callback run on and sends `commit` or `rollback` on the same connection. If the
// socket is still closed, that throws outside every promise and ends the process; if it was reopened,
// it ends another transaction (porsager/postgres#1204). With this guard neither the callback nor its
// statements settle, as the caller has the rejection of `begin`.
function guardTransactions(sql: Sql): void {
  const begin = sql.begin.bind(sql) as unknown as (...args: unknown[]) => Promise<unknown>;
  sql.begin = (...args: unknown[]): Promise<never> => {
    const loss: Loss = { lost: false };
    const run = begin(...withGuard(args, loss));
    run.catch(() => (loss.lost = true));
    return run as Promise<never>;
  };
}

const never = () => new Promise<never>(() => undefined);

function withGuard(args: readonly unknown[], loss: Loss): unknown[] {
  return args.map((argument) =>
    typeof argument === 'function' ? guardedCallback(argument as Callback, loss) : argument,
  );
}

function guardedCallback(callback: Callback, loss: Loss): Callback {
  return async (tx) => {
    try {
      const made = callback(guardedHandle(tx, loss));
      return await (Array.isArray(made) ? Promise.all(made) : made);
    } finally {
      // postgres.js would now end a transaction that may be another's.
      if (loss.lost) await never();
    }
  };
}

function guardedHandle(tx: Sql, loss: Loss): Sql {
  return new Proxy(tx, {
    apply: (target, self, args) => guardedQuery(Reflect.apply(target, self, args), loss),
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const call = value as (...args: unknown[]) => unknown;
      if (name === 'unsafe' || name === 'file')
        return (...args: unknown[]) => guardedQuery(call.apply(target, args), loss);
      if (name === 'savepoint')
        return (...args: unknown[]) => (loss.lost ? never() : call.apply(target, withGuard(args, loss)));
      return value;
    },
  });
}

/** Fragments and helpers such as `sql(object)` are no queries, and pass unchanged. */
function guardedQuery(made: unknown, loss: Loss): unknown {
  if (!(made instanceof Promise)) return made;
  const query = made as unknown as QueryInside;
  const { handler, reject } = query;
  query.handler = (self) => {
    if (!loss.lost) handler(self);
  };
  query.reject = (error) => {
    if (GONE.test(String((error as { code?: unknown } | null)?.code))) loss.lost = true;
    else reject(error);
  };
  return made;
}
