import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';

/** Any fixed number; every process that migrates this service's database uses it. */
const MIGRATION_LOCK = 7_205_114_233;

/**
 * Brings the schema up to date. Under an advisory lock, so that processes that boot together take turns and all but
 * the first find nothing to do.
 * @param folder of the migrations; tests have others.
 * @throws when the database cannot be reached or a migration fails; a failed migration leaves nothing behind.
 */
export async function migrateDatabase(url: string, folder = join(__dirname, 'migrations')): Promise<void> {
  const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice: () => undefined });
  try {
    await sql`select pg_advisory_lock(${MIGRATION_LOCK})`;
    await migrate(drizzle(sql), { migrationsFolder: folder });
  } finally {
    // Closing the session releases the lock.
    await sql.end({ timeout: 5 });
  }
}
