import { type FileHandle, open, stat } from 'node:fs/promises';

/** A development log is read today or never. */
const LOG_LIMIT_BYTES = 10_000_000;

/** Opens a child's log for appending, begun anew when above 10 MB. @returns it and where this start's part begins. */
export async function openLog(file: string): Promise<{ log: FileHandle; offset: number }> {
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  );
  const tooLong = size > LOG_LIMIT_BYTES;
  return { log: await open(file, tooLong ? 'w' : 'a', 0o600), offset: tooLong ? 0 : size };
}
