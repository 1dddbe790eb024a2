/**
 * `npm run build`: dist/ (or the folder that is named) with everything a process needs at run time beside node_modules: compiled code, the
 * workflow code and `ops` as one file each, and the list of packages that belong to it (dist/sbom.cdx.json). The embedded stack is no part of it.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
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
  for (const name of readdirSync(join(root, 'db/notifications')).filter((one) => one.endsWith('.sql')))
    cpSync(join(root, 'db/notifications', name), join(dist, 'db/notifications', name));

  bundleOps();
  const { code } = await bundleWorkflowCode(workflowCode(join(dist, 'workflows')));
  writeFileSync(join(dist, 'workflow-bundle.js'), code);
  writeFileSync(join(dist, 'sbom.cdx.json'), `${JSON.stringify(productionSbom(root), null, 2)}\n`);
}

/** `ops` as one file: to load 500 files takes most of a second of every call. */
function bundleOps(): void {
  // Not a dependency of ours: the compiler of tsx.
  const esbuild = createRequire(require.resolve('tsx'))('esbuild') as {
    buildSync: (options: object) => void;
  };
  esbuild.buildSync({
    absWorkingDir: root,
    entryPoints: ['bin/ops.ts'],
    outfile: join(dist, 'bin/ops.js'),
    bundle: true,
    platform: 'node',
    target: 'node20',
    // Loaded by few commands, and with native modules.
    external: ['@temporalio/*'],
    logLevel: 'warning',
  });
}

void main();
