import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { serverSocket } from './server-socket';

/** Any fixed number; every process that migrates this service's database uses it. */
const MIGRATION_LOCK = 7_205_114_233;

/**
 * Brings the schema up to date. Under an advisory lock, so that processes that boot together take turns and all but
 * the first find nothing to do.
 * @param folder of the migrations; tests have others.
 * @throws when the database cannot be reached or a migration fails; a failed migration leaves nothing behind.
 */
export async function migrateDatabase(
  databaseUrl: string,
  folder = join(__dirname, '../migrations'),
): Promise<void> {
  const server = serverSocket(databaseUrl, 0);
  const options = { max: 1, connect_timeout: 5, socket: server.socket, onnotice: () => undefined };
  const sql = postgres(server.url, options);
  try {
    await sql`select pg_advisory_lock(${MIGRATION_LOCK})`;
    await migrate(drizzle(sql), { migrationsFolder: folder });
  } finally {
    // Closing the session releases the lock.
    await sql.end({ timeout: 5 });
  }
}
