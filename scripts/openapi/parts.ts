import { z } from 'zod';
import type { ErrorCode } from '../../contracts/errors';
import { errorExample } from './examples';

/** A JSON object of the document; OpenAPI 3.1 schemas are JSON Schema 2020-12. */
export type Json = { [name: string]: unknown };

export const ref = (kind: string, name: string): Json => ({ $ref: `#/components/${kind}/${name}` });

const header = (description: string, schema: Json, required = true): Json => ({
  description,
  required,
  schema,
});

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
  XRateLimitReset: header('Unix second at which the window resets.', { type: 'integer' }),
  RetryAfter: header('Seconds to wait before trying again.', { type: 'integer', minimum: 1 }),
  WWWAuthenticate: header('How to authenticate.', { type: 'string', const: 'Bearer' }),
};

/** RateLimit headers are missing when a request fails before its key has been accepted, so a 400 may lack them. */
export const requestIdHeader: Json = { 'X-Request-Id': ref('headers', 'XRequestId') };
export const unauthenticatedHeaders: Json = {
  ...requestIdHeader,
  'WWW-Authenticate': ref('headers', 'WWWAuthenticate'),
};
export const keyedHeaders: Json = {
  ...requestIdHeader,
  'RateLimit-Policy': ref('headers', 'RateLimitPolicy'),
  'RateLimit-Limit': ref('headers', 'RateLimitLimit'),
  'RateLimit-Remaining': ref('headers', 'RateLimitRemaining'),
  'RateLimit-Reset': ref('headers', 'RateLimitReset'),
  'X-RateLimit-Limit': ref('headers', 'RateLimitLimit'),
  'X-RateLimit-Remaining': ref('headers', 'RateLimitRemaining'),
  'X-RateLimit-Reset': ref('headers', 'XRateLimitReset'),
};

export function errorResponse(description: string, responseHeaders: Json, codes: readonly ErrorCode[]): Json {
  const examples: Json = {};
  for (const code of codes) {
    const { when: summary, body: value } = errorExample(code);
    examples[code] = { summary, value };
  }
  return {
    description,
    headers: responseHeaders,
    content: { 'application/json': { schema: ref('schemas', 'Error'), examples } },
  };
}

/** An answer to a call whose key was accepted. */
export const keyedAnswer = (description: string, schema: string, examples: Json): Json => ({
  description,
  headers: keyedHeaders,
  content: { 'application/json': { schema: ref('schemas', schema), examples } },
});

/** How every call with a key can be refused. */
export const unauthenticated = errorResponse('The key is missing or not valid.', unauthenticatedHeaders, [
  'UNAUTHENTICATED',
]);
export const ourFault = errorResponse('A fault on our side.', requestIdHeader, ['INTERNAL_SERVER_ERROR']);
/** @param description what follows the limit that all calls have. @param others codes besides that limit's. */
export const tooMany = (description: string, ...others: ErrorCode[]): Json =>
  errorResponse(
    `More than 100 requests per minute with this key${description}`,
    {
      ...keyedHeaders,
      'Retry-After': ref('headers', 'RetryAfter'),
    },
    ['RATE_LIMIT_EXCEEDED', ...others],
  );

export const requestIdRefs: readonly Json[] = [
  ref('parameters', 'RequestId'),
  ref('parameters', 'CorrelationId'),
];

export const requestBody = (content: Json): Json => ({
  required: true,
  description: 'At most 16 KiB. Compressed bodies are not read.',
  content: { 'application/json': content },
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
    const {
      $defs = {},
      $schema: _dialect,
      ...own
    } = z.toJSONSchema(schema, {
      io,
      unrepresentable: 'throw',
      override: ({ jsonSchema }) => {
        // Clients must live with fields that are added later; that none leaves undeclared is the serializer's matter.
        if (io === 'output') delete jsonSchema.additionalProperties;
      },
    });
    if (own['$ref'] === undefined) throw new Error('a component schema needs an id');
    for (const [name, json] of Object.entries($defs)) {
      const { id: _id, ...plain } = json as Json;
      components[name] = plain;
    }
  }
  return JSON.parse(JSON.stringify(components).replaceAll('#/$defs/', '#/components/schemas/')) as Json;
}
