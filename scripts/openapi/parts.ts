import type { z } from 'zod';
import type { Json } from './portable';

export const ref = (kind: string, name: string): Json => ({ $ref: `#/components/${kind}/${name}` });

/** A body in JSON, of one of these schemas. */
export function content(schemas: readonly z.ZodType[], examples?: Json): Json {
  const [only, ...others] = schemas.map((schema) => ref('schemas', schema.meta()?.id ?? ''));
  return {
    'application/json': { schema: others.length === 0 ? only : { anyOf: [only, ...others] }, examples },
  };
}

const header = (description: string, schema: Json): Json => ({ description, required: true, schema });

export const headers: Json = {
  XRequestId: header('The id of this request: yours if you sent a usable one. Quote it to support.', {
    type: 'string',
    minLength: 1,
    maxLength: 128,
  }),
  RetryAfter: header('Seconds to wait before trying again.', { type: 'integer', minimum: 1 }),
  WWWAuthenticate: header('How to authenticate.', { type: 'string', examples: ['Bearer'] }),
};

/** Of the public listener alone. */
export const rateLimitHeaders: Json = {
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

export const requestIdRefs: readonly Json[] = [
  ref('parameters', 'RequestId'),
  ref('parameters', 'CorrelationId'),
];

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
