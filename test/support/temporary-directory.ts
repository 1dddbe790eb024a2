import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new directory that every account may enter: run by root, Postgres lives in it under another one. */
export async function temporaryDirectory(purpose: string, parent = tmpdir()): Promise<string> {
  const directory = await mkdtemp(join(parent, `pfqs-${purpose}-`));
  await chmod(directory, 0o755);
  return directory;
}

export async function removeDirectory(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true, maxRetries: 3 });
}
