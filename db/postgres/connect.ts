import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import * as schema from '../schema';
import { openClient, type Sql } from './driver/client';
import { createHintSender, hintAfterCommit } from './hints';

export interface DatabaseConfig {
  /** `postgres://…`, with `sslmode` and `sslrootcert` for TLS. */
  readonly url: string;
  readonly poolSize: number;
  readonly applicationName: string;
  /** Longest a statement may run, in milliseconds; the server ends it. 0: no limit. */
  readonly statementTimeoutMs: number;
  /**
   * For a pool whose statements are all prepared: they are planned once for each connection, and leave partitions out as they
   * begin. Else Postgres plans anew each time what touches partitioned tables, which costs more than to carry it out. Default: false.
   */
  readonly plannedOnce?: boolean;
  /** The same, and for statements that must follow an index without a sort, also in a month that was empty when they were planned. */
  readonly byIndex?: boolean;
}

/** An empty partition would be read as a whole and sorted, and its plan may be kept until it is full. */
export const BY_INDEX = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
  enable_incremental_sort: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  jit: 'off',
} as const;

export type { Sql };
export type Db = PostgresJsDatabase<typeof schema>;
/** A database or an open transaction of it. */
export type DbOrTransaction = Db | Parameters<Parameters<Db['transaction']>[0]>[0];

export interface Database {
  /** drizzle, for everything but the hot paths. What its transactions hint at is sent after their commit (hints.ts). */
  readonly db: Db;
  /** The client that drizzle uses. drizzle has replaced its date parsers: moments arrive as text here. */
  readonly sql: Sql;
  /** Sends the last hints and ends the pool, waiting at most five seconds for statements under way. */
  close(): Promise<void>;
}

/**
 * Settings every connection of ours starts with. `idle_in_transaction_session_timeout`: a transaction that sits idle
 * for 10 s is a leak that holds locks. `lock_timeout`: nothing of ours holds a lock for longer than a moment.
 * `client_connection_check_interval`: a statement whose process has died while it waited for a lock is not carried out after all.
 */
export function connectionSettings(config: Pick<DatabaseConfig, 'applicationName' | 'statementTimeoutMs'>) {
  return {
    application_name: config.applicationName,
    statement_timeout: config.statementTimeoutMs,
    idle_in_transaction_session_timeout: 10_000,
    lock_timeout: config.statementTimeoutMs,
    client_connection_check_interval: 1_000,
    TimeZone: 'UTC',
  };
}

/** Opens a pool; connects lazily. @throws when the URL asks for what TLS it cannot have (readServerTls). */
export function connectDatabase(config: DatabaseConfig): Database {
  const { statementTimeoutMs } = config;
  const sql = openClient(config.url, {
    // The server ends every statement before that, so a socket that is silent for longer is idle or its server hangs: a
    // frozen one would hold the pool for as long as TCP keeps trying, a quarter of an hour.
    quietMs: statementTimeoutMs > 0 ? statementTimeoutMs + 2_000 : 0,
    max: config.poolSize,
    // Seconds. A server that does not answer must not hold a caller for the library's default of 30.
    connect_timeout: 5,
    // Reconnect at once, then within a second: a restart of Postgres should be felt no longer than it lasts.
    backoff: (attempts: number) => Math.min(0.05 * 2 ** attempts, 1),
    connection: {
      ...connectionSettings(config),
      ...(config.plannedOnce && { plan_cache_mode: 'force_generic_plan' }),
      ...(config.byIndex && BY_INDEX),
    },
  });
  const db: Db = drizzle(sql, { schema });
  const hints = createHintSender(sql);
  for (const pool of [sql, db]) hints.takeFrom(pool);
  const begin = db.transaction.bind(db);
  db.transaction = (work, options) =>
    hintAfterCommit(db, (begun) =>
      begin((tx) => {
        begun(tx);
        return work(tx);
      }, options),
    );
  return {
    sql,
    db,
    async close() {
      await hints.flush();
      await sql.end({ timeout: 5 });
    },
  };
}
