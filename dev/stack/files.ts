import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { DemoData, StackInfo } from './types';

/** A reader sees the old content or the new, and nobody sees it with a wider mode. */
export async function writeAtomically(file: string, content: string, mode: number): Promise<void> {
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, content, { mode });
  await rename(draft, file);
}

/** For scripts: where the stack is and how to get in. Holds keys, so only its owner reads it. */
export async function writeStackFile(dataDir: string, info: StackInfo): Promise<void> {
  await writeAtomically(join(dataDir, 'stack.json'), `${JSON.stringify(info, null, 2)}\n`, 0o600);
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
