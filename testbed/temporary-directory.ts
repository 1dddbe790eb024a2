import { chmodSync, mkdtempSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new directory that every account may enter: run by root, Postgres lives in it under another one. */
export async function temporaryDirectory(purpose: string, parent = tmpdir()): Promise<string> {
  const directory = await mkdtemp(join(parent, `pfqs-${purpose}-`));
  await chmod(directory, 0o755);
  return directory;
}

/** Of the run: set by globalSetup, as test files live in other processes. */
export const RUN_DIRECTORY = 'PFQS_TEST_DIRECTORY';

/** A new directory for a test file or a test, in that of the run, and gone with it. */
export function runDirectory(purpose: string): string {
  const directory = mkdtempSync(join(process.env[RUN_DIRECTORY] ?? '', `${purpose}-`));
  chmodSync(directory, 0o755);
  return directory;
}

export async function removeDirectory(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true, maxRetries: 3 });
}
