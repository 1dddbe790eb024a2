import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import postgres from 'postgres';
import { PROCESSES, roleOf, type Process } from '../../db/postgres/roles';
import { keepAuthority, keepCertificate, writeAtomically } from '../../runtime/certificates/issue';
import type { DemoData, DevelopmentTls, StackInfo } from './types';

/** For scripts: where the stack is and how to get in. */
export async function writeStackFile(dataDir: string, info: StackInfo): Promise<void> {
  await writeAtomically(join(dataDir, 'stack.json'), `${JSON.stringify(info, null, 2)}\n`);
}

/** What an earlier start wrote; undefined when there was none or it cannot be read. */
export async function readStackFile(dataDir: string): Promise<Partial<DemoData> | undefined> {
  try {
    return JSON.parse(await readFile(join(dataDir, 'stack.json'), 'utf8')) as Partial<DemoData>;
  } catch {
    return undefined;
  }
}

/** The embedded Postgres' password: made once, kept apart from stack.json so that losing that one loses no data. */
export async function ensurePassword(dataDir: string): Promise<string> {
  return ensureSecret(join(dataDir, 'postgres-password'), () => randomBytes(18).toString('base64url'));
}

/** The passwords of those who log in to its database; lost, new ones are made and set. */
export async function ensureLoginPasswords(dataDir: string): Promise<Readonly<Record<Login, string>>> {
  const made = () =>
    Object.fromEntries(LOGINS.map((login) => [login, randomBytes(18).toString('base64url')]));
  const kept = await ensureSecret(join(dataDir, 'database-logins'), () => JSON.stringify(made()));
  return JSON.parse(kept) as Record<Login, string>;
}

/** The keys that the embedded stack seals webhook secrets with (`WEBHOOK_KEYS`), made once. */
export async function ensureWebhookKeys(dataDir: string): Promise<string> {
  return ensureSecret(join(dataDir, 'webhook-keys'), () => `dev:${randomBytes(32).toString('base64')}`);
}

/** Two processes that start at once both get what the first one made. */
async function ensureSecret(file: string, make: () => string): Promise<string> {
  const kept = await readFile(file, 'utf8').catch(() => '');
  if (kept !== '') return kept;
  await mkdir(dirname(file), { recursive: true });
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, make(), { mode: 0o600 });
  await link(draft, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await rm(draft, { force: true });
  return readFile(file, 'utf8');
}

const OWN = {
  names: [
    { type: 'dns', value: 'localhost' },
    { type: 'ip', value: '127.0.0.1' },
    { type: 'ip', value: '::1' },
  ],
  /** Clients refuse server certificates that live longer than 398 days. */
  days: 365,
  renewDays: 30,
} as const;

/** A development authority and a certificate for this machine's own names, made once and renewed when due. */
export async function ensureCertificates(directory: string, now: Date): Promise<DevelopmentTls> {
  await mkdir(directory, { recursive: true });
  const file = (name: string) => join(directory, name);
  const tls = { caFile: file('ca.pem'), certFile: file('cert.pem'), keyFile: file('key.pem') };
  const authority = await keepAuthority(
    { certFile: tls.caFile, keyFile: file('ca-key.pem') },
    'Partner Finance Quote Service development',
    now,
  );
  await keepCertificate(tls, authority, OWN, now);
  return tls;
}

/** Apart from `postgres`, so that dropping it is a fresh start. Its owner has the same name, as in docker-compose.yml. */
const DATABASE = 'quotes';

/** Who logs in: the owner of the schema, and each process. */
const LOGINS = [DATABASE, ...PROCESSES.map(roleOf)] as const;
export type Login = (typeof LOGINS)[number];

/** The same database for the migration and for each process. */
type DatabaseUrls = Readonly<Record<'migrate' | Process, string>>;

/** One login for everything, as DATABASE_URL gives it. */
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
  const urlIn = (database: string) => {
    const url = new URL(serverUrl);
    url.pathname = `/${database}`;
    return url.href;
  };
  try {
    const { limits, withhold } = await productionRights();
    for (const login of LOGINS) {
      const [there] = await sql`select 1 from pg_roles where rolname = ${login}`;
      await sql.unsafe(
        `${there ? 'alter' : 'create'} role ${login} login password '${passwords[login]}' connection limit ${limits[login]}`,
      );
    }
    const found = await sql`select 1 from pg_database where datname = ${DATABASE}`;
    if (found.length === 0) {
      await sql.unsafe(`create database ${DATABASE} owner ${DATABASE}`);
      await sql.unsafe(`revoke connect on database ${DATABASE}, postgres, template1 from public`);
    }
    const inside = postgres(urlIn(DATABASE), { max: 1, connect_timeout: 5, onnotice: () => undefined });
    try {
      await inside.unsafe(withhold);
    } finally {
      await inside.end({ timeout: 1 });
    }
  } finally {
    await sql.end({ timeout: 1 });
  }
  const urlOf = (login: Login) => {
    const url = new URL(urlIn(DATABASE));
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

/** What production's script gives the logins: read from it, so that there is one source. */
async function productionRights(): Promise<{
  readonly limits: Readonly<Record<string, string>>;
  readonly withhold: string;
}> {
  const script = await readFile(join(__dirname, '../../deploy/postgres/init.sh'), 'utf8');
  const limits = [...script.matchAll(/^create role (\w+) .*connection limit (\d+);$/gm)];
  const [, withhold] = /--dbname quotes <<'SQL'\n([\s\S]+?)\nSQL\n/.exec(script) ?? [];
  const known = Object.fromEntries(limits.map(([, login = '', most = '']) => [login, most]));
  if (withhold === undefined || LOGINS.some((login) => known[login] === undefined))
    throw new Error('deploy/postgres/init.sh is not what it was');
  return { limits: known, withhold };
}
