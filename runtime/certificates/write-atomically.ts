import { rename, writeFile } from 'node:fs/promises';

/** A reader sees the old content or the new, and only the owner reads it unless `mode` says otherwise. */
export async function writeAtomically(file: string, content: string, mode = 0o600): Promise<void> {
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, content, { mode });
  await rename(draft, file);
}
