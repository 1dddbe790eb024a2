import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** The workflow files for the bundler and workers; apart, because tests and the build load no worker. @param folder absolute path. */
export function workflowCode(folder: string) {
  const kind = existsSync(join(folder, 'index.ts')) ? 'ts' : 'js';
  const workflowsPath = join(folder, `index.${kind}`);
  const failureConverterPath = join(folder, `failure-converter.${kind}`);
  return { workflowsPath, preloadModules: [workflowsPath], failureConverterPath };
}
