import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { copyFile, mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { findGo, goInstall, runProgram, toolsFolder } from '../../dev/temporal/tools';
import { removeDirectory, temporaryDirectory } from '../../testbed/temporary-directory';

/** @returns a program that is built once, by Go. */
async function built(name: string, version: string, module: string): Promise<string> {
  const folder = join(await toolsFolder(), `${name}-${version}`);
  if (existsSync(join(folder, name))) return join(folder, name);
  await mkdir(folder, { recursive: true });
  const packages = [`${module}/cmd/${name}@v${version}`];
  await goInstall({ packages, what: name, folder, onProgress: () => undefined });
  return join(folder, name);
}

export const findHelm = () => built('helm', '3.22.0', 'helm.sh/helm/v3');
export const findKubeconform = () => built('kubeconform', '0.8.0', 'github.com/yannh/kubeconform');

/** The first version that the chart claims, and the one of test/kubernetes. */
export const KUBERNETES = ['1.27.0', '1.37.2'] as const;
const CRDS = {
  'github.com/prometheus-operator/prometheus-operator@v0.85.0': [
    'example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml',
    'example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml',
  ],
  'github.com/cert-manager/cert-manager@v1.21.2': ['deploy/crds/cert-manager.io_certificates.yaml'],
  'github.com/external-secrets/external-secrets@v1.3.2': [
    'config/crds/bases/external-secrets.io_externalsecrets.yaml',
  ],
  'sigs.k8s.io/gateway-api@v1.3.0': ['config/crd/standard/gateway.networking.k8s.io_httproutes.yaml'],
};

/** @returns files of a Go module, which are kept, as the modules themselves are large. */
async function filesOf(module: string, files: readonly string[]): Promise<string[]> {
  const folder = join(await toolsFolder(), module.replaceAll('/', '_'));
  const kept = files.map((file) => join(folder, file.replaceAll('/', '_')));
  if (kept.every((file) => existsSync(file))) return kept;
  const cache = await temporaryDirectory('modules');
  try {
    const download = [await findGo(), 'mod', 'download', '-json', module];
    const out = await runProgram('env', [`GOPATH=${cache}`, 'GOFLAGS=-modcacherw', ...download], {
      cwd: cache,
      timeoutMs: 600_000,
    });
    const { Dir } = JSON.parse(out) as { Dir: string };
    await mkdir(folder, { recursive: true });
    for (const [nth, file] of files.entries()) {
      const part = `${kept[nth]}.${process.pid}`;
      await copyFile(join(Dir, file), part);
      await rename(part, kept[nth] ?? '');
    }
  } finally {
    await removeDirectory(cache);
  }
  return kept;
}

type Json = Record<string, unknown>;

/** For JSON.parse: as a server with `fieldValidation: Strict` reads it, an object has no fields but those that the specification names. */
function strict(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const schema = value as Json;
  if (schema['format'] === 'int-or-string') return { type: ['integer', 'string'] };
  const open = 'additionalProperties' in schema || 'x-kubernetes-preserve-unknown-fields' in schema;
  return 'properties' in schema && !open ? { ...schema, additionalProperties: false } : schema;
}

/**
 * Writes JSON schemas of what Kubernetes itself and the custom resource definitions of others specify.
 * @returns the `-schema-location` of kubeconform
 */
export async function writeSchemas(folder: string): Promise<string> {
  for (const version of KUBERNETES) {
    await mkdir(join(folder, `v${version}`));
    const write = (name: string, schema: object) =>
      writeFileSync(join(folder, `v${version}`, `${name}.json`), JSON.stringify(schema));
    const [file = ''] = await filesOf(`k8s.io/kubernetes@v${version}`, ['api/openapi-spec/swagger.json']);
    const { definitions } = JSON.parse(readFileSync(file, 'utf8'), strict) as {
      definitions: Record<string, Json>;
    };
    // A quantity may be written as a number.
    definitions['io.k8s.apimachinery.pkg.api.resource.Quantity'] = { type: ['string', 'number'] };
    write('all', { definitions });
    for (const [name, definition] of Object.entries(definitions)) {
      const kinds = definition['x-kubernetes-group-version-kind'] as Json[] | undefined;
      if (kinds?.length !== 1) continue;
      const [{ group, version: of, kind } = {}] = kinds;
      write(`${String(group) || String(of)}-${String(of)}-${String(kind)}`.toLowerCase(), {
        $ref: `all.json#/definitions/${name}`,
      });
    }
    for (const [module, files] of Object.entries(CRDS))
      for (const text of (await filesOf(module, files)).map((crd) => readFileSync(crd, 'utf8'))) {
        const { group, names, versions } = parse(text).spec;
        for (const { name, schema } of versions)
          write(
            `${group}-${name}-${names.kind}`.toLowerCase(),
            JSON.parse(JSON.stringify(schema.openAPIV3Schema), strict),
          );
      }
  }
  return join(
    folder,
    '{{.NormalizedKubernetesVersion}}/{{.Group}}-{{.ResourceAPIVersion}}-{{.ResourceKind}}.json',
  );
}
