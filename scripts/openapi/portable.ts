import { z } from 'zod';

/** A JSON object of the document; OpenAPI 3.1 schemas are JSON Schema 2020-12. */
export type Json = { [name: string]: unknown };

/**
 * Rewrites a JSON Schema into the part of OpenAPI 3.1 that public generators share (`npm run test:clients` runs six of them).
 * What we answer is open: a list of values becomes text that names those known today, and clients accept others.
 */
export function portable(schema: Json, io: 'input' | 'output'): Json {
  const own = { ...schema };
  for (const rewrite of [stringAlone, nullable, withoutNoise, ...(io === 'output' ? [open] : [])])
    rewrite(own);
  return Object.fromEntries(Object.entries(own).map(([name, value]) => [name, inner(value, io)]));
}

function inner(value: unknown, io: 'input' | 'output'): unknown {
  if (Array.isArray(value)) return value.map((one) => inner(one, io));
  return typeof value === 'object' && value !== null ? portable(value as Json, io) : value;
}

const isNull = (schema: Json) => schema['type'] === 'null';

/** An amount is documented as the string alone: of a union openapi-generator makes a class without a value in Rust, Kotlin and Swift. */
function stringAlone(schema: Json): void {
  const any = schema['anyOf'] as Json[] | undefined;
  const [string] = any?.filter(({ type }) => type === 'string') ?? [];
  if (any?.some(({ type }) => type === 'number') && string !== undefined) {
    delete schema['anyOf'];
    Object.assign(schema, { ...string, ...schema });
  } else for (const one of any ?? []) stringAlone(one);
}

/** `type: [string, null]` in place of a union, where it is one type. */
function nullable(schema: Json): void {
  const any = schema['anyOf'] as Json[] | undefined;
  const [only, ...others] = any?.filter((one) => !isNull(one)) ?? [];
  if (any?.length !== 2 || only === undefined || others.length > 0 || typeof only['type'] !== 'string')
    return;
  delete schema['anyOf'];
  Object.assign(schema, { ...only, ...schema, type: [only['type'], 'null'] });
}

function withoutNoise(schema: Json): void {
  // The format says it; the pattern is a leap year's length.
  if (schema['format'] === 'date-time') delete schema['pattern'];
  // zod's bounds of every whole number.
  if (schema['maximum'] === Number.MAX_SAFE_INTEGER) delete schema['maximum'];
  if (schema['minimum'] === Number.MIN_SAFE_INTEGER) delete schema['minimum'];
  // Without it, Go's pounds are 32 bits wide.
  if (schema['type'] === 'number') schema['format'] ??= 'double';
  // A generated client compares it with the text 'true'.
  if (typeof schema['const'] === 'boolean') {
    schema['examples'] ??= [schema['const']];
    delete schema['const'];
  }
}

function open(schema: Json): void {
  const { const: only, enum: listed = only === undefined ? undefined : [only] } = schema;
  if (!Array.isArray(listed)) return;
  delete schema['const'];
  delete schema['enum'];
  const values = listed.filter((value) => value !== null) as string[];
  const said = (schema['description'] as string | undefined) ?? '';
  const quoted = values.map((value) => `\`${value}\``);
  const sentences = [
    said,
    quoted.every((value) => said.includes(value)) ? '' : `Known values: ${quoted.join(', ')}.`,
    'Others may be added.',
  ];
  schema['description'] = sentences.filter((sentence) => sentence !== '').join(' ');
  const shown = (schema['examples'] as string[] | undefined) ?? [];
  schema['examples'] = [...new Set([...shown, ...values])];
  // As Zalando's guidelines have it: for programs, such as the generator of our typed client.
  schema['x-extensible-enum'] = values;
}

/** Zod leaves examples out where it transforms what was sent; ours show what is sent. */
export const keepExamples = ({
  zodSchema,
  jsonSchema,
}: {
  readonly zodSchema: z.core.$ZodType;
  readonly jsonSchema: z.core.JSONSchema.BaseSchema;
}): void => {
  const examples = z.globalRegistry.get(zodSchema)?.examples;
  if (Array.isArray(examples)) jsonSchema.examples = examples;
};

/** Component schemas of zod schemas that carry a `meta({ id })`, with their references rewritten. */
export function componentSchemas(schemas: readonly (readonly [z.ZodType, 'input' | 'output'])[]): Json {
  const components: Json = {};
  for (const [schema, io] of schemas) {
    const { $defs = {}, $ref } = z.toJSONSchema(schema, {
      io,
      unrepresentable: 'throw',
      override: (context) => {
        keepExamples(context);
        // Clients must live with fields that are added later; that none leaves undeclared is the serializer's matter.
        if (io === 'output') delete context.jsonSchema.additionalProperties;
      },
    });
    if ($ref === undefined) throw new Error('a component schema needs an id');
    for (const [name, json] of Object.entries($defs)) {
      const { id: _id, ...plain } = json as Json;
      components[name] = portable(plain, io);
    }
  }
  return JSON.parse(JSON.stringify(components).replaceAll('#/$defs/', '#/components/schemas/')) as Json;
}
