import { z } from 'zod';
import { portable, type Json } from './portable';

export type { Json };

export const ref = (kind: string, name: string): Json => ({ $ref: `#/components/${kind}/${name}` });

/** A body in JSON. */
export const content = (schema: string | Json, examples?: Json): Json => ({
  'application/json': { schema: typeof schema === 'string' ? ref('schemas', schema) : schema, examples },
});

const header = (description: string, schema: Json): Json => ({ description, required: true, schema });

export const headers: Json = {
  XRequestId: header('The id of this request: yours if you sent a usable one. Quote it to support.', {
    type: 'string',
    minLength: 1,
    maxLength: 128,
  }),
  RateLimitPolicy: header('Calls per window and its length in seconds.', {
    type: 'string',
    examples: ['100;w=60'],
  }),
  RateLimitLimit: header('Calls per window.', { type: 'integer', examples: [100] }),
  RateLimitRemaining: header('Calls left in this window.', { type: 'integer', minimum: 0, examples: [99] }),
  RateLimitReset: header(
    'Seconds until the window resets, rounded up. Wait at least that long after a 429.',
    {
      type: 'integer',
      minimum: 1,
      examples: [42],
    },
  ),
  XRateLimitLimit: header('Calls per window.', { type: 'integer', examples: [100] }),
  XRateLimitRemaining: header('Calls left in this window.', { type: 'integer', minimum: 0, examples: [99] }),
  XRateLimitReset: header('Unix second at which the window resets.', {
    type: 'integer',
    examples: [1_795_262_460],
  }),
  RetryAfter: header('Seconds to wait before trying again.', { type: 'integer', minimum: 1 }),
  WWWAuthenticate: header('How to authenticate.', { type: 'string', examples: ['Bearer'] }),
};

/** Headers whose components have their names, without the dashes. */
const named = (...names: readonly string[]): Json =>
  Object.fromEntries(names.map((name) => [name, ref('headers', name.replaceAll('-', ''))]));

export const requestIdHeader = named('X-Request-Id');
export const retryAfter = named('Retry-After');
export const unauthenticatedHeaders = named('X-Request-Id', 'WWW-Authenticate');
export const keyedHeaders: Json = named(
  'X-Request-Id',
  'RateLimit-Policy',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
);

/** The paths of a document, from its operations by method and path. */
export const pathsOf = <Operation>(
  operation: (path: string, of: Operation) => Json,
  operations: Readonly<Record<`${'get' | 'post'} /${string}`, Operation>>,
): Json =>
  Object.fromEntries(
    Object.entries(operations).map(([at, own]) => {
      const [method = '', path = ''] = at.split(' ');
      return [path, { [method]: operation(path, own) }];
    }),
  );

/**
 * The responses of a call that can be refused with the codes of every call and with its own, by status.
 * @param statuses the closed list of codes of the document.
 */
export function byStatus<Code extends string>(
  statuses: Readonly<Record<Code, number>>,
  own: readonly NoInfer<Code>[],
  response: (status: number, codes: readonly Code[]) => Json | undefined,
): Json {
  const everywhere = ['INVALID_REQUEST', 'UNAUTHENTICATED', 'RATE_LIMIT_EXCEEDED', 'INTERNAL_SERVER_ERROR'];
  const codes = [...everywhere, ...own, 'NOT_FOUND'] as Code[];
  const of = (status: number) => codes.filter((code) => statuses[code] === status);
  const found = new Set(codes.map((code) => statuses[code]));
  return Object.fromEntries([...found].map((status) => [status, response(status, of(status))]));
}

export const requestIdRefs: readonly Json[] = [
  ref('parameters', 'RequestId'),
  ref('parameters', 'CorrelationId'),
];

export const requestBody = (...of: Parameters<typeof content>): Json => ({
  required: true,
  description: 'At most 16 KiB. Compressed bodies are not read.',
  content: content(...of),
});

export const requestIdParameters: Json = {
  RequestId: {
    name: 'X-Request-Id',
    in: 'header',
    description:
      'Your id for this request, 1–128 visible ASCII characters; echoed. Another value is replaced.',
    schema: { type: 'string' },
  },
  CorrelationId: {
    name: 'X-Correlation-Id',
    in: 'header',
    description: 'Taken as the request id where no usable X-Request-Id is sent.',
    schema: { type: 'string' },
  },
};

/** Component schemas of zod schemas that carry a `meta({ id })`, with their references rewritten. */
export function componentSchemas(schemas: readonly (readonly [z.ZodType, 'input' | 'output'])[]): Json {
  const components: Json = {};
  for (const [schema, io] of schemas) {
    const { $defs = {}, $ref } = z.toJSONSchema(schema, {
      io,
      unrepresentable: 'throw',
      override: ({ zodSchema, jsonSchema }) => {
        // zod leaves them out where it transforms what was sent; ours show what is sent.
        const examples = z.globalRegistry.get(zodSchema)?.examples;
        if (Array.isArray(examples)) jsonSchema.examples = examples;
        // Clients must live with fields that are added later; that none leaves undeclared is the serializer's matter.
        if (io === 'output') delete jsonSchema.additionalProperties;
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
