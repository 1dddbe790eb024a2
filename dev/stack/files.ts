import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { writeAtomically } from '../../runtime/certificates/issue';
import { LOGINS, type Login } from './database';
import type { DemoData, StackInfo } from './types';

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

/** The keys that the embedded stack seals webhook secrets with (`WEBHOOK_KEYS`), likewise. */
export async function ensureWebhookKeys(dataDir: string): Promise<string> {
  return ensureSecret(join(dataDir, 'webhook-keys'), () => `dev:${randomBytes(32).toString('base64')}`);
}

/** Two that start at once both get what the first one made. */
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
