import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { drizzle } from 'drizzle-orm/postgres-js';
import { keepRetentionDays, type KeptDays } from '../retention/days';
import { applyMigrations, takeMigrationLock, withShortLocks } from './apply-migrations';
import { openClient, type Sql } from './driver/client';
import { applyRights } from './rights';
import { roleOf, type Process } from './roles';

/** The SQLSTATE with which a migration tells the operator what it has changed. */
const CHANGED_ROWS = 'PFQ01';

export const separationNotice = (notSeparated: readonly Process[]) =>
  `this login may not create the roles ${notSeparated.map(roleOf).join(', ')}, so these processes have to share a login that owns the ` +
  'tables: each may change the schema and rewrite the change log (docs/operations/production.md, "Logins of the database")';

/** The database has another history than ours, or belongs to another login. Nothing was changed. */
export class ForeignSchema extends Error {
  override readonly name = 'ForeignSchema';
}

/**
 * Brings schema, functions, partitions and the rights of the roles up to date, while the service runs.
 * Processes that start together take turns by an advisory lock. A release older than the schema changes
 * nothing.
 * @param databaseUrl of the login that owns the schema, or will own it
 * @param retention days that each kind is kept; absent: as now, at first the usual days
 * @returns `notSeparated`: processes whose roles this login may not create, so that they share a login;
 * `changes`: what a migration has changed in rows, in words for the operator
 * @throws ForeignSchema; RetentionShortened, with all else done; any other error of a migration, which
 * the next call begins again
 */
export async function migrateDatabase(
  databaseUrl: string,
  folder = join(__dirname, '../migrations'),
  retention?: KeptDays,
) {
  const changes: string[] = [];
  const sql = openClient(databaseUrl, {
    max: 1,
    connect_timeout: 5,
    quietMs: 0,
    // Large tables take their time, whatever limit the server or database has for others. A change of rows is a warning.
    connection: { statement_timeout: 0, lock_timeout: 0, client_min_messages: 'warning' },
    onnotice: ({ code, message = '' }) => void (code === CHANGED_ROWS && changes.push(message)),
  });
  try {
    // Postgres before 17 does not have it.
    await sql`select set_config(name, '0', false) from pg_settings where name = 'transaction_timeout'`;
    await takeMigrationLock(sql);
    await checkOrigin(sql, folder);
    await applyMigrations(sql, folder);
    if (await isAhead(sql, folder)) return { notSeparated: [], changes };
    for (const file of FILES) await sql.unsafe(textOf(file));
    await ensurePartitions(sql);
    const notSeparated = await applyRights(sql);
    await keepRetentionDays(drizzle(sql), retention);
    return { notSeparated, changes };
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Before 0.1.0 migrations are squashed, and a database of an earlier squash cannot be migrated. */
async function checkOrigin(sql: Sql, folder: string): Promise<void> {
  const [found] = await sql`
    select pg_has_role(relowner, 'USAGE') as ours, pg_get_userbyid(relowner)::text as owner, current_user::text as login
    from pg_class where relname = '__drizzle_migrations'
      and relnamespace = (select oid from pg_namespace where nspname = 'drizzle')`;
  if (found === undefined) return;
  if (found['ours'] !== true)
    throw new ForeignSchema(
      `The schema of this database belongs to ${found['owner']}, and this login is ${found['login']}; nothing was changed. ` +
        'Migrate with the login that owns it. For npm start, whose data an earlier build made: move the data folder (DATA_DIR, .data by ' +
        'default) away, and start again.',
    );
  const [first] = await sql`select hash from drizzle.__drizzle_migrations order by id limit 1`;
  if (first === undefined || first['hash'] === readMigrationFiles({ migrationsFolder: folder })[0]?.hash)
    return;
  throw new ForeignSchema(
    'This database was made by a build from before 0.1.0 and cannot be brought up to date; nothing in it was changed. ' +
      'Use a new database (DATABASE_URL). For npm start: move the data folder (DATA_DIR, .data by default) away, and start again.',
  );
}

/** Whether a newer release has migrated: its functions and rights then stay. */
async function isAhead(sql: Sql, folder: string): Promise<boolean> {
  const ours = readMigrationFiles({ migrationsFolder: folder }).at(-1)?.folderMillis ?? 0;
  const [row] = await sql`select max(created_at)::float8 as newest from drizzle.__drizzle_migrations`;
  return Number(row?.['newest']) > ours;
}

// Installed after the migrations. Names end with a version, as two builds run side by side.
const FILES = [
  ...['claim', 'create', 'open', 'record'].map((name) => `notifications/${name}.sql`),
  'applications/store.sql',
].map((name) => join(__dirname, '..', name));

const FUNCTION = /^CREATE OR REPLACE FUNCTION (\w+)\([\s\S]*?\$\$([\s\S]*?)\$\$;$/gm;

const textOf = (file: string) => readFileSync(file, 'utf8').replaceAll('\r\n', '\n');

/** Names of functions that are missing in a database, or differ there from their file. */
export async function differentFunctions(sql: Sql): Promise<string[]> {
  const installed = await sql.unsafe<{ name: string; text: string }[]>(
    `select proname::text as name, prosrc as text from pg_proc where pronamespace = 'public'::regnamespace`,
  );
  const texts = new Map(installed.map(({ name, text }) => [name, text]));
  return FILES.flatMap((file) => [...textOf(file).matchAll(FUNCTION)])
    .filter(([, name = '', text]) => texts.get(name) !== text)
    .map(([, name = '']) => name);
}

/** A new month locks the default partition, which a dump reads, and behind whose lock every delivery waits. */
const ensurePartitions = (sql: Sql, giveUpMs?: number) =>
  withShortLocks(sql, async (tx) => void (await tx`select keep_month_partitions()`), giveUpMs);

/** The same once a day, in any number of processes. Months are made a year ahead, so tomorrow is soon enough. */
export function keepPartitionsAhead(sql: Sql, onError: (error: unknown) => void): { stop(): void } {
  const timer = setInterval(() => void ensurePartitions(sql, 0).catch(onError), 86_400_000).unref();
  return { stop: () => clearInterval(timer) };
}
