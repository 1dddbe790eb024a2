import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { keepRetentionDays, type KeptDays } from '../retention/days';
import { openClient, type Sql } from './driver/client';
import { applyRights } from './rights';
import { roleOf, type Process } from './roles';

/** Any fixed number; every process that migrates this service's database uses it. */
const MIGRATION_LOCK = 7_205_114_233;

export const separationNotice = (notSeparated: readonly Process[]) =>
  `this login may not create the roles ${notSeparated.map(roleOf).join(', ')}, so these processes have to share a login that owns the ` +
  'tables: each may change the schema and rewrite the change log (docs/operations/install.md, "Logins of the database")';

/** The database was migrated by another history than ours, or belongs to another login: nothing was changed. */
export class ForeignSchema extends Error {
  override readonly name = 'ForeignSchema';
}

/**
 * Brings the schema, its functions, its partitions and the rights of the processes' roles up to date. An advisory lock makes processes
 * that start together take turns; all but the first find nothing to do. A release older than the schema changes nothing.
 * @param databaseUrl of the login that owns the schema, or is to own it.
 * @param folder of the migrations; tests have others.
 * @param retention how many days each kind is kept; absent: as now, at first the usual days.
 * @returns `notSeparated`: processes without a role, which this login may not create: they have to share a login that may do everything.
 * @throws ForeignSchema; RetentionShortened, with everything else done; else when the database cannot be reached or a migration fails,
 *   which leaves nothing behind.
 */
export async function migrateDatabase(
  databaseUrl: string,
  folder = join(__dirname, '../migrations'),
  retention?: KeptDays,
) {
  const sql = openClient(databaseUrl, { max: 1, connect_timeout: 5, quietMs: 0 });
  try {
    await sql`select pg_advisory_lock(${MIGRATION_LOCK})`;
    await checkOrigin(sql, folder);
    await migrate(drizzle(sql), { migrationsFolder: folder });
    if (await isAhead(sql, folder)) return { notSeparated: [] };
    await installFunctions(sql);
    await ensurePartitions(sql);
    const notSeparated = await applyRights(sql);
    await keepRetentionDays(drizzle(sql), retention);
    return { notSeparated };
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Before 0.1.0 the migrations are squashed from time to time: a database made by an earlier squash cannot be migrated. */
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

/** Whether a newer release has migrated already: then its functions and rights stay. */
async function isAhead(sql: Sql, folder: string): Promise<boolean> {
  const ours = readMigrationFiles({ migrationsFolder: folder }).at(-1)?.folderMillis ?? 0;
  const [row] = await sql`select max(created_at)::float8 as newest from drizzle.__drizzle_migrations`;
  return Number(row?.['newest']) > ours;
}

/** Installed after the migrations. A function's name ends with its version: two builds run side by side (docs/operations/upgrade.md). */
const FILES = ['claim', 'open', 'record'].map((name) => join(__dirname, '../notifications', `${name}.sql`));

const FUNCTION = /^CREATE OR REPLACE FUNCTION (\w+)\([\s\S]*?\$\$([\s\S]*?)\$\$;$/gm;

const textOf = (file: string) => readFileSync(file, 'utf8').replaceAll('\r\n', '\n');

async function installFunctions(sql: Sql): Promise<void> {
  for (const file of FILES) await sql.unsafe(textOf(file));
}

/** Names of functions that are missing in a database, or have another text there than in their file. */
export async function differentFunctions(sql: Sql): Promise<string[]> {
  const installed = await sql.unsafe<{ name: string; text: string }[]>(
    `select proname::text as name, prosrc as text from pg_proc where pronamespace = 'public'::regnamespace`,
  );
  const texts = new Map(installed.map(({ name, text }) => [name, text]));
  return FILES.flatMap((file) => [...textOf(file).matchAll(FUNCTION)])
    .filter(([, name = '', text]) => texts.get(name) !== text)
    .map(([, name = '']) => name);
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Creates the missing partitions of this month and the next twelve. Rows of a month without one go to the default partition. */
async function ensurePartitions(sql: Sql): Promise<void> {
  await sql`select keep_month_partitions()`;
}

/** The same once a day. Many processes may do so: they take turns in the database. */
export function keepPartitionsAhead(sql: Sql, onError: (error: unknown) => void): { stop(): void } {
  const timer = setInterval(() => {
    ensurePartitions(sql).catch(onError);
  }, DAY_MS);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}
