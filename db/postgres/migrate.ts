import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/postgres-js';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { openClient, type Sql } from './driver/client';

/** Any fixed number; every process that migrates this service's database uses it. */
const MIGRATION_LOCK = 7_205_114_233;

/** The database has another history than ours: nothing was changed. */
export class ForeignSchema extends Error {
  override readonly name = 'ForeignSchema';
}

/**
 * Brings the schema up to date. Under an advisory lock, so that processes that boot together take turns and all but
 * the first find nothing to do.
 * @param folder of the migrations; tests have others.
 * @throws ForeignSchema for a database whose first migration is not ours; else when the database cannot be reached or a migration
 *   fails. A failed migration leaves nothing behind.
 */
export async function migrateDatabase(
  databaseUrl: string,
  folder = join(__dirname, '../migrations'),
): Promise<void> {
  const sql = openClient(databaseUrl, { max: 1, connect_timeout: 5, quietMs: 0 });
  try {
    await sql`select pg_advisory_lock(${MIGRATION_LOCK})`;
    await checkOrigin(sql, folder);
    await migrate(drizzle(sql), { migrationsFolder: folder });
  } finally {
    // Closing the session releases the lock.
    await sql.end({ timeout: 5 });
  }
}

/** Before 0.1.0 the migrations were made into one, more than once: what an earlier one has made cannot be brought up to date. */
async function checkOrigin(sql: Sql, folder: string): Promise<void> {
  const [table] = await sql`select to_regclass('drizzle.__drizzle_migrations') is not null as there`;
  if (table?.['there'] !== true) return;
  const [first] = await sql`select hash from drizzle.__drizzle_migrations order by id limit 1`;
  if (first === undefined || first['hash'] === readMigrationFiles({ migrationsFolder: folder })[0]?.hash)
    return;
  throw new ForeignSchema(
    'This database was made by a build from before 0.1.0 and cannot be brought up to date; nothing in it was changed. ' +
      'Use a new database (DATABASE_URL). For npm start: move the data folder (DATA_DIR, .data by default) away, and start again.',
  );
}
