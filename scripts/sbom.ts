import { execFileSync } from 'node:child_process';

/** Of CycloneDX 1.5, what is used here. */
export interface Sbom {
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

/**
 * The packages of the lock file that production installs (the Dockerfile's `npm ci --omit=dev --omit=optional`), as a
 * CycloneDX 1.5 document that npm writes. npm marks the others, and is not asked to omit them itself: 11.19 then also
 * leaves out most packages that production needs. npm 10 lists a package as often as it is installed; here each is there once.
 * @throws when npm cannot write it.
 */
export function productionSbom(root: string): Sbom {
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
    ({ scope, properties }) =>
      scope === 'required' && !properties.some(({ name }) => name === 'cdx:npm:package:development'),
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

/** Without what has come before under the same name. */
function once<T>(list: readonly T[], nameOf: (one: T) => string): T[] {
  const known = new Set<string>();
  return list.filter((one) => !known.has(nameOf(one)) && known.add(nameOf(one)));
}
