import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { WorkflowBundleOption } from '@temporalio/worker';

/** Code of the workflows: bundled, or the folder of their sources. */
export type WorkflowCode = { readonly bundle: WorkflowBundleOption } | { readonly folder: string };

/**
 * The bundle that `npm run build` writes beside the compiled code. From sources Temporal bundles the folder at the start, in two seconds.
 * @param root folder above `bin/`; the caller gives it, because the build makes one file of all of `ops`
 */
export function builtWorkflows(root: string): WorkflowCode {
  const codePath = join(root, 'workflow-bundle.js');
  return existsSync(codePath) ? { bundle: { codePath } } : { folder: join(root, 'workflows') };
}

/** The code as options of a worker. */
export function codeOptions(code: WorkflowCode) {
  if ('bundle' in code) return { workflowBundle: code.bundle };
  const { workflowsPath, preloadModules } = workflowCode(code.folder);
  return { workflowsPath, bundlerOptions: { preloadModules } };
}

/**
 * The files of the workflows, for the bundler and for workers.
 * @param folder absolute path
 */
export function workflowCode(folder: string) {
  const kind = existsSync(join(folder, 'index.ts')) ? 'ts' : 'js';
  const workflowsPath = join(folder, `index.${kind}`);
  const failureConverterPath = join(folder, `failure-converter.${kind}`);
  return { workflowsPath, preloadModules: [workflowsPath], failureConverterPath };
}
