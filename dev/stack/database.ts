import postgres from 'postgres';
import { PROCESSES, roleOf, type Process } from '../../db/postgres/roles';

/** Apart from `postgres`, so that dropping it is a fresh start. Its owner has the same name, as in docker-compose.yml. */
const DATABASE = 'quotes';

/** Who logs in: the owner of the schema, and each process. */
export const LOGINS = [DATABASE, ...PROCESSES.map(roleOf)] as const;
export type Login = (typeof LOGINS)[number];

/** The same database for the migration and for each process. */
export type DatabaseUrls = Readonly<Record<'migrate' | Process, string>>;

/** One login for everything, as somebody has given it. */
export const oneLogin = (url: string): DatabaseUrls => ({ migrate: url, api: url, worker: url, ops: url });

/**
 * Makes the service's database and its logins on a server where they are missing, and sets their passwords.
 * @param serverUrl of the superuser.
 * @param passwords letters, digits, `-` and `_`.
 */
export async function ensureDatabase(
  serverUrl: string,
  passwords: Readonly<Record<Login, string>>,
): Promise<DatabaseUrls> {
  const sql = postgres(serverUrl, { max: 1, connect_timeout: 5, onnotice: () => undefined });
  try {
    for (const login of LOGINS) {
      const [there] = await sql`select 1 from pg_roles where rolname = ${login}`;
      await sql.unsafe(`${there ? 'alter' : 'create'} role ${login} login password '${passwords[login]}'`);
    }
    const found = await sql`select 1 from pg_database where datname = ${DATABASE}`;
    if (found.length === 0) {
      await sql.unsafe(`create database ${DATABASE} owner ${DATABASE}`);
      await sql.unsafe(`revoke connect on database ${DATABASE}, postgres, template1 from public`);
    }
  } finally {
    await sql.end({ timeout: 1 });
  }
  const urlOf = (login: Login) => {
    const url = new URL(serverUrl);
    url.pathname = `/${DATABASE}`;
    url.username = login;
    url.password = passwords[login];
    return url.href;
  };
  return {
    migrate: urlOf(DATABASE),
    api: urlOf('quotes_api'),
    worker: urlOf('quotes_worker'),
    ops: urlOf('quotes_ops'),
  };
}
