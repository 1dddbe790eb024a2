import postgres from 'postgres';
import { runProgram } from '../temporal/run-program';

/** Names of the two databases. */
export const DATABASES = { history: 'temporal', visibility: 'temporal_visibility' } as const;

/**
 * What we look for workflows by: newest first, by id, by status, and by our five search attributes, which take the first
 * keyword columns. The other 45 indexes cost a third of Temporal's time in Postgres and serve no query of ours. The columns stay:
 * Temporal writes them.
 */
const KEPT_INDEXES = [
  'executions_visibility_pkey',
  'default_idx',
  'by_workflow_id',
  'by_status',
  'by_keyword_01',
  'by_keyword_02',
  'by_keyword_03',
  'by_keyword_04',
  'by_keyword_05',
];

export interface SchemaOptions {
  /** Superuser, any database of the server. */
  readonly postgresUrl: string;
  readonly sqlTool: string;
  readonly onProgress: (message: string) => void;
  readonly signal: AbortSignal | undefined;
}

/** Brings both databases to the schema of the server's version; what is there already stays. */
export async function ensureSchema({
  postgresUrl,
  sqlTool,
  onProgress,
  signal,
}: SchemaOptions): Promise<void> {
  const { hostname, port, username, password } = new URL(postgresUrl);
  const env = {
    SQL_PLUGIN: 'postgres12_pgx',
    SQL_HOST: hostname,
    SQL_PORT: port,
    SQL_USER: username,
    SQL_PASSWORD: decodeURIComponent(password),
  };
  const sql = postgres(postgresUrl, { max: 1, onnotice: () => undefined });
  try {
    for (const [name, folder] of [
      [DATABASES.history, 'temporal'],
      [DATABASES.visibility, 'visibility'],
    ] as const) {
      const tool = async (...args: string[]) =>
        runProgram(sqlTool, ['--db', name, ...args], { env, timeoutMs: 120_000, signal });
      const [there] = await sql`select 1 from pg_database where datname = ${name}`;
      if (!there) {
        onProgress(`creating the database ${name}`);
        await tool('create-database');
        await tool('setup-schema', '-v', '0.0');
      }
      await tool('update-schema', '--schema-name', `postgresql/v12/${folder}`);
    }
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Drops the indexes on workflows' attributes that nothing of ours asks for. */
export async function dropUnusedIndexes(postgresUrl: string): Promise<void> {
  const url = new URL(postgresUrl);
  url.pathname = `/${DATABASES.visibility}`;
  const sql = postgres(url.href, { max: 1, onnotice: () => undefined });
  try {
    const unused = await sql<{ name: string }[]>`
      select indexname as name from pg_indexes
      where tablename = 'executions_visibility' and indexname <> all (${KEPT_INDEXES})`;
    for (const { name } of unused) await sql`drop index ${sql(name)}`;
  } finally {
    await sql.end({ timeout: 1 });
  }
}
