/**
 * `npm run build`: dist/ with everything a process needs at run time besides node_modules, and the workflow code bundled
 * (dist/workflow-bundle.js). No TypeScript is needed after it.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';
import { workflowCode } from '../runtime/temporal/workflow-code';

const root = join(__dirname, '..');
const dist = join(root, 'dist');

async function main(): Promise<void> {
  rmSync(dist, { recursive: true, force: true });
  execFileSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json'],
    {
      cwd: root,
      stdio: 'inherit',
    },
  );
  // What is read from files beside the code.
  for (const path of ['db/migrations', 'api/documentation/pages', 'examples/verify-webhook', 'dev/shop/page'])
    cpSync(join(root, path), join(dist, path), { recursive: true });

  const { code } = await bundleWorkflowCode(workflowCode(join(dist, 'workflows')));
  writeFileSync(join(dist, 'workflow-bundle.js'), code);
}

void main();
