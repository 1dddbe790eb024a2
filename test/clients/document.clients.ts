import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { partnerOperations } from '../../api/routes/operations';
import { runProgram } from '../../dev/temporal/tools';
import { fileNeeds } from '../support/needs';
import { runDirectory } from '../../testbed/temporary-directory';
import { findGenerator } from './generators';

fileNeeds('npm generators');
jest.setTimeout(300_000);

const folder = runDirectory('linted');
const contracts = join(__dirname, '../../contracts');
const program = async (name: string, args: readonly string[]) => {
  const file = join(await findGenerator('npm generators'), 'node_modules/.bin', name);
  return runProgram(file, args, { cwd: folder, timeoutMs: 300_000 });
};

test.each(['openapi.json', 'internal-openapi.json'])("%s passes Redocly's default rules", async (name) => {
  await program('redocly', ['lint', join(contracts, name)]);
});

test.each(['openapi.json', 'internal-openapi.json'])("%s passes Spectral's default rules", async (name) => {
  writeFileSync(join(folder, '.spectral.yaml'), 'extends: ["spectral:oas"]\n');
  await program('spectral', ['lint', '--fail-severity', 'warn', join(contracts, name)]);
});

interface Item {
  readonly name: string;
  readonly item?: readonly Item[];
  readonly request?: { readonly body?: { readonly raw?: string } };
}

test("Postman's collection has our address and, set to examples, bodies that are ours", async () => {
  const options = ['-O', 'parametersResolution=Example'];
  await program('openapi2postmanv2', [
    '-s',
    join(contracts, 'openapi.json'),
    '-o',
    'collection.json',
    ...options,
  ]);
  const collection = JSON.parse(readFileSync(join(folder, 'collection.json'), 'utf8')) as {
    readonly item: readonly Item[];
    readonly variable: readonly object[];
  };
  const requests = (items: readonly Item[]): Item[] =>
    items.flatMap((one) => [one, ...requests(one.item ?? [])]);
  const bodies = requests(collection.item).flatMap(({ request }) => {
    const raw = request?.body?.raw;
    return raw ? [JSON.parse(raw) as object] : [];
  });
  expect(collection.variable).toEqual([expect.objectContaining({ value: 'https://quotes.example' })]);
  const ours = partnerOperations.flatMap(({ body }) => Object.values(body?.examples ?? {}));
  expect(bodies).toEqual(ours.map(({ value }) => value));
});
