import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/postgres-js';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { applyRights } from './apply-rights';
import { openClient, type Sql } from './driver/client';
import { keepRetentionDays, type KeptDays } from '../retention/days';
import { installFunctions } from './functions';
import { ensurePartitions } from './partitions';
import { roleOf, type Process } from './roles';

/** Any fixed number; every process that migrates this service's database uses it. */
const MIGRATION_LOCK = 7_205_114_233;

interface Migrated {
  /** Processes without a role of their own, as this login may not create any: whoever runs them uses this login, and may do everything. */
  readonly notSeparated: readonly Process[];
}

export const separationNotice = (notSeparated: readonly Process[]) =>
  `this login may not create the roles ${notSeparated.map(roleOf).join(', ')}, so these processes have to share a login that owns the ` +
  'tables: each may change the schema and rewrite the change log (docs/operations/install.md, "Logins of the database")';

/** The database has another history than ours, or belongs to another login: nothing was changed. */
export class ForeignSchema extends Error {
  override readonly name = 'ForeignSchema';
}

/**
 * Brings the schema, its functions, its partitions and the rights of the processes' roles up to date. Under an advisory lock, so that processes that
 * boot together take turns and all but the first find nothing to do. A release older than the schema leaves all as it is.
 * @param databaseUrl of the login that owns the schema, or is to own it.
 * @param folder of the migrations; tests have others.
 * @param retention how many days what is kept; absent: as many as now, at first the usual ones.
 * @throws ForeignSchema for a database whose first migration is not ours, or that belongs to another login; else when the database cannot
 *   be reached or a migration fails. A failed migration leaves nothing behind. RetentionShortened, with everything else done.
 */
export async function migrateDatabase(
  databaseUrl: string,
  folder = join(__dirname, '../migrations'),
  retention?: KeptDays,
): Promise<Migrated> {
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
    // Closing the session releases the lock.
    await sql.end({ timeout: 5 });
  }
}

/** Before 0.1.0 the migrations were made into one, more than once: what an earlier one has made cannot be brought up to date. */
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

/** A newer release has migrated already: its rights are what is wanted. */
async function isAhead(sql: Sql, folder: string): Promise<boolean> {
  const ours = readMigrationFiles({ migrationsFolder: folder }).at(-1)?.folderMillis ?? 0;
  const [row] = await sql`select max(created_at)::float8 as newest from drizzle.__drizzle_migrations`;
  return Number(row?.['newest']) > ours;
}
