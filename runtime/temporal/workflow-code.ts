import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { WorkflowBundleOption } from '@temporalio/worker';

const FOLDER = join(__dirname, '../../workflows');
/** Written by `npm run build`, beside the compiled code. */
const BUNDLE = join(__dirname, '../../workflow-bundle.js');

/** Code of the workflows: bundled, or the folder of their sources. */
export type WorkflowCode = { readonly bundle: WorkflowBundleOption } | { readonly folder: string };

/** The bundle of the build. From sources Temporal bundles the folder at the start, in two seconds. */
export const builtWorkflows = (): WorkflowCode =>
  existsSync(BUNDLE) ? { bundle: { codePath: BUNDLE } } : { folder: FOLDER };

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
