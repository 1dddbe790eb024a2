import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What the workflows of a folder are bundled from: their index, and what is loaded once for all runs.
 * @param folder absolute path of `workflows/`, as source or compiled.
 */
export function workflowCode(folder: string) {
  const kind = existsSync(join(folder, 'index.ts')) ? 'ts' : 'js';
  return { workflowsPath: join(folder, `index.${kind}`), preloadModules: [join(folder, `preload.${kind}`)] };
}
