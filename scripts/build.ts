/**
 * `npm run build`: dist/ (or the folder that is named) with everything a process needs at run time besides node_modules, and the workflow code bundled
 * (dist/workflow-bundle.js), and the list of packages that go with it (dist/sbom.cdx.json). No
 * TypeScript is needed after it. The embedded stack is no part of it.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';
import { workflowCode } from '../runtime/temporal/workflow-code';
import { productionSbom } from './sbom';

const root = join(__dirname, '..');
const dist = resolve(process.argv[2] ?? join(root, 'dist'));

async function main(): Promise<void> {
  rmSync(dist, { recursive: true, force: true });
  execFileSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json', '--outDir', dist],
    {
      cwd: root,
      stdio: 'inherit',
    },
  );
  // What is read from files beside the code.
  for (const path of ['db/migrations', 'api/documentation/pages', 'examples/verify-webhook'])
    cpSync(join(root, path), join(dist, path), { recursive: true });

  const { code } = await bundleWorkflowCode(workflowCode(join(dist, 'workflows')));
  writeFileSync(join(dist, 'workflow-bundle.js'), code);
  writeFileSync(join(dist, 'sbom.cdx.json'), `${JSON.stringify(productionSbom(root), null, 2)}\n`);
}

void main();
