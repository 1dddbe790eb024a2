import postgres from 'postgres';

/** Apart from `postgres`, so that dropping it is a fresh start. */
const DATABASE = 'quotes';

/** Makes the service's database on a server when it is missing. @returns its URL. */
export async function ensureDatabase(serverUrl: string): Promise<string> {
  const sql = postgres(serverUrl, { max: 1, connect_timeout: 5, onnotice: () => undefined });
  try {
    const found = await sql`select 1 from pg_database where datname = ${DATABASE}`;
    if (found.length === 0) await sql`create database ${sql(DATABASE)}`;
  } finally {
    await sql.end({ timeout: 1 });
  }
  const url = new URL(serverUrl);
  url.pathname = `/${DATABASE}`;
  return url.href;
}
