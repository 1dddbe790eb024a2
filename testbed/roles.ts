import type postgres from 'postgres';
import { openClient } from '../db/postgres/driver/client';
import { migrateDatabase } from '../db/postgres/migrate';
import { PROCESSES, roleOf, type Process } from '../db/postgres/roles';

/** The address as a process has it: with its role, whose password is that of the address (migrateWithLogins). */
export function asRole(url: string, process: Process): string {
  const own = new URL(url);
  own.username = roleOf(process);
  return own.href;
}

/** Brings a test's own server up to date, and lets the roles log in with the password of its superuser. */
export async function migrateWithLogins(url: string): Promise<void> {
  await migrateDatabase(url);
  const sql = openClient(url, { max: 1, quietMs: 0 });
  try {
    const password = decodeURIComponent(new URL(url).password);
    for (const process of PROCESSES)
      await sql.unsafe(`alter role ${roleOf(process)} login password '${password.replaceAll("'", "''")}'`);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** SQLSTATE of a right that is missing. */
export const NO_RIGHT = '42501';

/** SQLSTATE that Postgres refuses a statement with; `done` when it does not. */
export const sqlStateOf = (login: postgres.Sql, statement: string): Promise<string> =>
  login.unsafe(statement).then(
    () => 'done',
    (error: postgres.PostgresError) => error.code,
  );
