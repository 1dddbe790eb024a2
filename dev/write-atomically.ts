import { rename, writeFile } from 'node:fs/promises';

/** A reader sees the old content or the new, and nobody sees it with a wider mode. */
export async function writeAtomically(file: string, content: string, mode: number): Promise<void> {
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, content, { mode });
  await rename(draft, file);
}
