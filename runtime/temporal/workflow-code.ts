import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What the workflows of a folder are bundled from: their index, what is loaded once for all runs, and how their errors get into
 * histories. Workers need the last one too, bundle or not.
 * @param folder absolute path of `workflows/`, as source or compiled.
 */
export function workflowCode(folder: string) {
  const kind = existsSync(join(folder, 'index.ts')) ? 'ts' : 'js';
  return {
    workflowsPath: join(folder, `index.${kind}`),
    preloadModules: [join(folder, `preload.${kind}`)],
    failureConverterPath: join(folder, `failure-converter.${kind}`),
  };
}
