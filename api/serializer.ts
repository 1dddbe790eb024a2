import fastJson, { type Schema } from 'fast-json-stringify';
import { z } from 'zod';

/**
 * Compiles a response schema into a serializer: an undeclared field cannot leave, and a response costs no validation
 * pass. Fields are written in the order the schema declares them.
 */
export function serializer<T>(schema: z.ZodType<T>): (value: T) => string {
  const json = z.toJSONSchema(schema, { target: 'draft-7', io: 'output' });
  return fastJson(json as Schema);
}
