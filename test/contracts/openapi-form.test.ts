import internalDocument from '../../contracts/internal-openapi.json';
import publicDocument from '../../contracts/openapi.json';

/**
 * The part of OpenAPI 3.1 that public generators share. Each rule names what went wrong without it, in a client that was generated and
 * run (openapi-generator 7.25, oapi-codegen 2.8, ogen 1.24). `npm run test:clients` runs them.
 */
type Json = { readonly [name: string]: unknown };
interface Found {
  readonly at: string;
  readonly value: Json;
}
type Rule = (found: Found, document: Json) => boolean;

function* objectsIn(value: unknown, at = ''): Generator<Found> {
  if (typeof value !== 'object' || value === null) return;
  // What is shown is no schema.
  if (/\/examples?$/.test(at)) return;
  if (!Array.isArray(value)) yield { at, value: value as Json };
  for (const [name, inner] of Object.entries(value)) yield* objectsIn(inner, `${at}/${name}`);
}

const branches = (value: Json): readonly Json[] =>
  ['anyOf', 'oneOf'].flatMap((name) => (value[name] as Json[] | undefined) ?? []);
const isUnion = (value: Json) => branches(value).length > 0 || Array.isArray(value['type']);
/** The part of the document that only answers, errors and webhooks use. */
const isAnswered = ({ at }: Found) => {
  const [, schema] = /^\/components\/schemas\/(\w+)/.exec(at) ?? [];
  return schema !== undefined && !/Request$|^ApplicationBy/.test(schema);
};

/** Each describes what is refused. */
const RULES: Readonly<Record<string, Rule>> = {
  'a boolean with one value (Python and PHP compare it with the text "true")': ({ value }) =>
    typeof value['const'] === 'boolean' || ((value['enum'] as unknown[] | undefined) ?? []).includes(true),
  'a pattern beside a date-time (Python: expected string)': ({ value }) =>
    value['format'] === 'date-time' && 'pattern' in value,
  'a pattern with what the dialects do not share (PHP knows no \\u; quotes and backticks end texts)': ({
    value,
  }) => typeof value['pattern'] === 'string' && /\\u|["'`]|\(\?[^:]/.test(value['pattern']),
  'null alone, outside a union (Python: crash)': ({ at, value }) =>
    value['type'] === 'null' && !/\/(anyOf|oneOf)\/\d+$/.test(at),
  'a union inside a union (oapi-codegen cannot send it)': ({ value }) =>
    branches(value).some((branch) => isUnion(branch)),
  'a schema that includes another (openapi-generator loses its nulls, and then refuses them)': ({ value }) =>
    'allOf' in value,
  'a numeric exclusive bound (ogen)': ({ value }) =>
    ['exclusiveMinimum', 'exclusiveMaximum'].some((name) => typeof value[name] === 'number'),
  'a component of headers for two headers (ogen)': ({ at, value }) =>
    at.endsWith('/headers') &&
    at !== '/components/headers' &&
    Object.entries(value).some(
      ([name, header]) => (header as Json)['$ref'] !== `#/components/headers/${name.replaceAll('-', '')}`,
    ),
  'a closed list in an answer (clients throw at a new value)': (found) =>
    isAnswered(found) && ('enum' in found.value || 'const' in found.value),
  'a list of known values that its description and examples lack': ({ value }) =>
    ((value['x-extensible-enum'] as string[] | undefined) ?? []).some(
      (known) =>
        !String(value['description']).includes(`\`${known}\``) ||
        !(value['examples'] as unknown[]).includes(known),
    ),
  'a schema named as what languages have already (Error)': ({ at, value }) =>
    at === '/components/schemas' && ['Error', 'Exception', 'Object'].some((name) => name in value),
  'an address that is not whole (orval, Postman and Python take it literally)': ({ at, value }) =>
    /^$|^\/servers\/\d+$|^\/info\/contact$|^\/externalDocs$/.test(at) &&
    typeof value['url'] === 'string' &&
    at !== '/servers/0' &&
    !value['url'].startsWith('https://'),
};

const DOCUMENTS = [
  ['partners', publicDocument as Json],
  ['lender integrations', internalDocument as Json],
] as const;

describe.each(DOCUMENTS)('the document of %s has nothing that a generator trips over:', (_who, document) => {
  const all = [...objectsIn(document)];
  test.each(Object.entries(RULES))('%s', (_rule, breaks) => {
    expect(all.filter((found) => breaks(found, document)).map(({ at }) => at)).toEqual([]);
  });
});

const webhooks = Object.values(publicDocument.webhooks).map(({ post }) => post);

test('webhooks have a tag and, as they carry no key, no security of their own', () => {
  const tags = Object.values(publicDocument.paths).flatMap((path) =>
    Object.values(path as Record<string, { tags: string[] }>).flatMap((operation) => operation.tags),
  );
  for (const webhook of webhooks) {
    expect(webhook.security).toEqual([]);
    expect(tags).not.toContain(webhook.tags[0]);
  }
});

test('every schema is in reach of a call: oapi-codegen drops the others', () => {
  const { schemas } = publicDocument.components;
  const reached = new Set<string>();
  const follow = (value: unknown) => {
    for (const [, name = ''] of JSON.stringify(value).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (reached.has(name)) continue;
      reached.add(name);
      follow(schemas[name as keyof typeof schemas]);
    }
  };
  follow(publicDocument.paths);
  expect(Object.keys(schemas).filter((name) => !reached.has(name))).toEqual([]);
});

test('the public address is whole, and a placeholder', () => {
  expect(publicDocument.servers.map(({ url }) => url)).toEqual(['https://quotes.example']);
});

test('every operation and every parameter has a description', () => {
  const bare = [...objectsIn({ paths: publicDocument.paths, webhooks: publicDocument.webhooks })].filter(
    ({ value }) => ('operationId' in value || 'in' in value) && !value['description'],
  );
  expect(bare.map(({ at }) => at)).toEqual([]);
});
