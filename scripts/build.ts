/**
 * `npm run build`: dist/ (or the folder that is named) with everything a process needs at run time beside node_modules: compiled code, the
 * documentation site, the workflow code and `ops` as one file each, and the list of packages that belong to it (dist/sbom.cdx.json). The embedded stack is no part of it.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';
import { workflowCode } from '../runtime/temporal/workflow-code';
import { ensureSite } from '../site/build';

const root = join(__dirname, '..');
const dist = resolve(process.argv[2] ?? join(root, 'dist'));

async function main(): Promise<void> {
  rmSync(dist, { recursive: true, force: true });
  execFileSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json', '--outDir', dist],
    { cwd: root, stdio: 'inherit' },
  );
  // What is read from files beside the code.
  await ensureSite();
  for (const path of ['db/migrations', 'api/site'])
    cpSync(join(root, path), join(dist, path), { recursive: true });
  cpSync(join(root, 'worker/workflow-thread.cjs'), join(dist, 'worker/workflow-thread.cjs'));
  for (const folder of ['db/applications', 'db/notifications'])
    for (const name of readdirSync(join(root, folder)).filter((one) => one.endsWith('.sql')))
      cpSync(join(root, folder, name), join(dist, folder, name));

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

/** Of CycloneDX 1.5, what is used here. */
interface Sbom {
  readonly metadata: { readonly component: { readonly 'bom-ref': string; readonly name: string } };
  readonly components: readonly {
    readonly 'bom-ref': string;
    readonly purl: string;
    readonly scope: string;
    readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
    readonly properties: readonly { readonly name: string }[];
  }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** What VitePress and Scalar put into the documentation site. */
const IN_SITE =
  /^pkg:npm\/(?:vitepress|minisearch|mark\.js|focus-trap|tabbable|vue|%40vue(?:use)?\/[\w-]+|%40scalar\/fastify-api-reference)@/;

/**
 * The packages of the lock file that production installs (the Dockerfile's `npm ci --omit=dev --omit=optional`) or serves, as a
 * CycloneDX 1.5 document that npm writes. npm marks the others, and is not asked to omit them itself: 11.19 then also
 * leaves out most packages that production needs. npm 10 lists a package as often as it is installed; here each is there once.
 * @throws when npm cannot write it.
 */
function productionSbom(root: string): Sbom {
  const args = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--workspaces=false'];
  const text = execFileSync('npm', [...args, '--package-lock-only'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 64_000_000,
  });
  const all = JSON.parse(text) as Sbom;
  const self = all.metadata.component['bom-ref'];
  const inProduction = all.components.filter(
    ({ purl, scope, properties }) =>
      IN_SITE.test(purl) ||
      (scope === 'required' && !properties.some(({ name }) => name === 'cdx:npm:package:development')),
  );
  const components = once(inProduction, (one) => one['bom-ref']);
  const kept = new Set([self, ...components.map((one) => one['bom-ref'])]);
  return {
    ...all,
    // npm takes the name of the folder.
    metadata: {
      ...all.metadata,
      component: { ...all.metadata.component, name: self.slice(0, self.lastIndexOf('@')) },
    },
    components,
    dependencies: once(all.dependencies, ({ ref }) => ref)
      .filter(({ ref }) => kept.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => kept.has(one)) })),
  };
}

/** One of each name. */
const once = <T>(list: readonly T[], nameOf: (one: T) => string): T[] => [
  ...new Map(list.map((one) => [nameOf(one), one])).values(),
];

void main();
