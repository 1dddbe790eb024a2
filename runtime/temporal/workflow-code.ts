import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Workers need the failure converter too, with a prebuilt bundle or without.
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
