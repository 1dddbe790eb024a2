import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The files of the workflow code that the bundler and a worker need. A file of its own: tests and the build do not load a worker.
 * @param folder absolute path of `workflows/`, as source or compiled.
 */
export function workflowCode(folder: string) {
  const kind = existsSync(join(folder, 'index.ts')) ? 'ts' : 'js';
  const workflowsPath = join(folder, `index.${kind}`);
  const failureConverterPath = join(folder, `failure-converter.${kind}`);
  return { workflowsPath, preloadModules: [workflowsPath], failureConverterPath };
}
