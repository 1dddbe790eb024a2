import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import type postgres from 'postgres';
import { withTimeout } from '../../timing/timing';
import { openClient, type Sql } from './driver/client';
import { sendHintsOf } from './hints';

export interface DatabaseConfig {
  /** `postgres://…`, with `sslmode` and `sslrootcert` for TLS. */
  readonly url: string;
  readonly poolSize: number;
  readonly applicationName: string;
  /** Longest a statement may run, in milliseconds; the server ends it. 0: no limit. */
  readonly statementTimeoutMs: number;
  /**
   * Statements are prepared and planned once a connection, as planning over partitions is costly. They follow an index
   * without a sort, so that those planned on an empty table stay right when it fills.
   */
  readonly byIndex?: boolean;
  /** Keeps connections that are idle: on a busy machine another may take longer to open than a statement may wait. */
  readonly keepsIdle?: boolean;
  /** Gets what Postgres reports beside its answers; by default it is ignored. */
  readonly onNotice?: (text: string) => void;
}

/** Without these, a plan made for an empty partition sorts all of it while it fills. */
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
export type Db = PostgresJsDatabase;
export type DbOrTransaction = Db | Parameters<Parameters<Db['transaction']>[0]>[0];

export interface Database {
  readonly db: Db;
  /** The client that drizzle uses. drizzle has replaced its date parsers, so moments arrive as text. */
  readonly sql: Sql;
  close(): Promise<void>;
}

/**
 * Settings of every connection. A transaction that is idle for 10 s is a leak that keeps locks; where a statement may
 * take longer, a transaction may be idle for as long, because an import computes between two statements. No transaction of
 * ours needs a lock for long. `client_connection_check_interval` ends a statement that waits for a lock when its process has died.
 */
export function connectionSettings(config: Pick<DatabaseConfig, 'applicationName' | 'statementTimeoutMs'>) {
  return {
    application_name: config.applicationName,
    statement_timeout: config.statementTimeoutMs,
    idle_in_transaction_session_timeout: Math.max(10_000, config.statementTimeoutMs),
    lock_timeout: config.statementTimeoutMs,
    client_connection_check_interval: 1_000,
    TimeZone: 'UTC',
  };
}

/**
 * Asks Postgres for one of these settings.
 * @throws when Postgres does not answer, or a pooler such as PgBouncer keeps them from it (`ignore_startup_parameters`).
 * In transaction mode that also mixes up statements that are prepared.
 */
export async function checkSession(sql: Sql, timeoutMs: number): Promise<void> {
  const asked = sql`select current_setting('client_connection_check_interval') <> '0' as ours`;
  const [row] = await withTimeout(asked, timeoutMs, 'Postgres');
  if (row?.['ours'] !== true)
    throw new Error(
      'the settings of a session do not reach Postgres: DATABASE_URL must lead to Postgres, not to a pooler such as PgBouncer',
    );
}

export type Reader = Sql | DbOrTransaction;

export type Parameter = string | number | boolean | null | Buffer | readonly string[];

/** A moment in Unix milliseconds: clients parse timestamps differently, but not numbers. */
export const msText = (moment: string) => `(extract(epoch from ${moment}) * 1000)::float8`;

const camel = (name: string) => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Columns of `t`, such as `key_id, created_at`, under their names in the code; moments in ms. */
export const columns = (t: string, names: string): string =>
  names
    .split(/,\s*/)
    .map(
      (name) =>
        `${/_(?:at|since|until)$/.test(name) ? msText(`${t}.${name}`) : `${t}.${name}`} as "${camel(name)}"`,
    )
    .join(', ');

/** Like runPrepared, but makes dates of milliseconds in columns named after a moment (`createdAt`). */
export async function rowsOf<Row>(reader: Reader, text: string, parameters: readonly Parameter[]) {
  const rows = await runPrepared<object>(reader, text, parameters);
  return rows.map((row) => {
    const entries = Object.entries(row).map(([name, value]) =>
      /(?:At|Since|Until)$/.test(name) && typeof value === 'number' ? [name, new Date(value)] : [name, value],
    );
    return Object.fromEntries(entries) as Row;
  });
}

/** Runs a constant text as a prepared statement: drizzle's own take two round trips each time. */
export async function runPrepared<Row>(reader: Reader, text: string, parameters: readonly Parameter[] = []) {
  const client = typeof reader === 'function' ? reader : clientOf(reader);
  const rows = await client.unsafe(text, parameters as never[], { prepare: true });
  return [...rows] as unknown as Row[];
}

/** The first row as `rowsOf` returns it; null when there is none. */
export const firstRow = async <Row>(reader: Reader, text: string, parameters: readonly Parameter[]) =>
  (await rowsOf<Row>(reader, text, parameters))[0] ?? null;

export async function oneRow<Row>(reader: Reader, text: string, parameters: readonly Parameter[] = []) {
  const [row] = await runPrepared<Row>(reader, text, parameters);
  if (row === undefined) throw new Error(`no row came back from: ${text.trim().slice(0, 100)}`);
  return row;
}

const NOW = `select ${msText('service_now()')} as ms`;

/** The clock of the database, in whole milliseconds. */
export const databaseNow = async (reader: Reader) =>
  new Date(Math.floor((await oneRow<{ ms: number }>(reader, NOW)).ms));

function clientOf(reader: DbOrTransaction): Sql {
  return (reader._.session as unknown as { readonly client: Sql }).client;
}

/**
 * Opens a pool that connects lazily.
 * @throws for a bad URL or bad TLS parameters (readServerTls)
 */
export function connectDatabase(config: DatabaseConfig): Database {
  const { statementTimeoutMs, keepsIdle = statementTimeoutMs === 0, onNotice } = config;
  const sql = openClient(config.url, {
    // The server ends every statement before that, so one that is silent for longer hangs. TCP would keep a frozen server's
    // connections for a quarter of an hour.
    quietMs: statementTimeoutMs > 0 ? statementTimeoutMs + 2_000 : 0,
    // In seconds. postgres.js takes a connection from its pool before it closes it.
    idle_timeout: keepsIdle ? 0 : statementTimeoutMs / 1_000 + 1,
    max: config.poolSize,
    ...(onNotice && { onnotice: ({ message }: postgres.Notice) => onNotice(message ?? '') }),
    // In seconds. The library's default of 30 would keep callers waiting.
    connect_timeout: 5,
    // Reconnects at once, then within a second, so that a restart of Postgres is soon over.
    backoff: (attempts: number) => Math.min(0.05 * 2 ** attempts, 1),
    connection: {
      ...connectionSettings(config),
      ...(config.byIndex && BY_INDEX),
    },
  });
  const db: Db = drizzle(sql);
  const hints = sendHintsOf(sql, db);
  return {
    sql,
    db,
    async close() {
      await hints.flush();
      await sql.end({ timeout: 5 });
    },
  };
}
