import type postgres from 'postgres';

type Sql = postgres.Sql<Record<string, never>>;

/** What we use of a query of postgres.js 3.4: both are public fields of its class, and missing from its types. */
interface QueryInside {
  handler: (query: unknown) => void;
  reject: (error: unknown) => void;
}

interface Loss {
  lost: boolean;
}

type Callback = (tx: Sql) => unknown;

/** Errors by which postgres.js, or Postgres with its last words (57P01 to 57P03), says that the connection has gone. */
const GONE = /^(CONNECTION_(CLOSED|DESTROYED|ENDED)|ECONNRESET|EPIPE|57P0[1-3])$/;

/**
 * Keeps a transaction whose connection has gone from using it. postgres.js 3.4.9 rejects `begin` then, but lets the
 * callback run on and ends it with `commit` or `rollback` on the same connection: on a socket that is no more, which
 * throws outside every promise and ends the process; or, when it has been opened again, in somebody else's transaction
 * (porsager/postgres#1204). Here neither the callback nor its statements ever settle; the caller has had the rejection
 * of `begin`.
 */
export function guardTransactions(sql: Sql): void {
  const begin = sql.begin.bind(sql) as unknown as (...args: unknown[]) => Promise<unknown>;
  const guarded = (...args: unknown[]): Promise<unknown> => {
    const loss: Loss = { lost: false };
    const run = begin(...withGuard(args, loss));
    run.catch(() => (loss.lost = true));
    return run;
  };
  sql.begin = guarded;
}

const never = () => new Promise<never>(() => undefined);

/** The arguments of `begin` or `savepoint`, with their callback given a guarded handle. */
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
      // postgres.js would now commit, or roll back, on a connection that is no longer this transaction's.
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

/** Fragments and helpers (`sql(object)`) are no queries, and pass. */
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
