import { ANSWERED_AMOUNT } from '../contracts/fields';
import fastJson, { type Schema } from 'fast-json-stringify';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { FINANCE_URL_PATTERN } from '../contracts/quote-request';

/** What they allow needs no escaping in JSON: no quote, no backslash, no control character. */
const PLAIN: readonly unknown[] = [ANSWERED_AMOUNT, FINANCE_URL_PATTERN];

/**
 * Compiles a response schema into a serializer: an undeclared field cannot leave, and a response costs no validation
 * pass. Fields are written in the order the schema declares them.
 */
export function serializer<T>(schema: z.ZodType<T>): (value: T) => string {
  const json = z.toJSONSchema(schema, {
    target: 'draft-7',
    io: 'output',
    override: ({ jsonSchema }) => {
      // Looking for what to escape is a third of the work of an answer.
      if (PLAIN.includes(jsonSchema.pattern)) jsonSchema.format = 'unsafe';
    },
  });
  // Where a schema has alternatives, a validator chooses between them, and it must know the format.
  return fastJson(json as Schema, { ajv: { formats: { unsafe: true } } });
}

/** Compiles a response schema into what answers a call that succeeded. */
export function answerer<Data>(schema: z.ZodType<{ success: true; data: Data }>) {
  const serialize = serializer(schema);
  return (reply: FastifyReply, data: Data, status: 200 | 202 = 200): FastifyReply =>
    reply
      .code(status)
      .type('application/json; charset=utf-8')
      .send(serialize({ success: true, data }));
}
