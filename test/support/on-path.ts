import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The file that the first of these names has on the PATH, by the order of the names; undefined when there is none. */
export function onPath(...names: readonly string[]): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(runs);
}

function runs(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
