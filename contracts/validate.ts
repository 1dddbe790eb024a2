import { z } from 'zod';
import type { ErrorCode, ErrorDetails, InternalErrorCode } from './errors';

export interface Violation {
  readonly code: ErrorCode | InternalErrorCode;
  readonly message: string;
  readonly details?: ErrorDetails;
}

/** Characters of a caller's own field name that an answer repeats. */
export const LONGEST_NAME = 64;

export type Validated<T> = { readonly value: T } | { readonly violation: Violation };

export function violation(code: Violation['code'], message: string, field: string, fields?: string[]) {
  return { violation: { code, message, details: { field, ...(fields && { fields }) } } };
}

/**
 * Builds the check of a body: an object, required fields (all that are absent or null), then formats, of
 * which the first fault in the order of the fields is reported. A strict schema refuses unknown fields.
 */
export function bodyValidator<S extends z.ZodObject>(schema: S): (body: unknown) => Validated<z.output<S>> {
  const required = Object.entries(schema.shape)
    .filter(([, field]) => !(field as z.ZodType).safeParse(undefined).success)
    .map(([name]) => name);
  return (body) => {
    if (typeof body !== 'object' || body === null || Array.isArray(body))
      return { violation: { code: 'INVALID_REQUEST', message: 'The body must be a JSON object.' } };
    const sent = body as Record<string, unknown>;
    const fields = required.filter((name) => sent[name] === undefined || sent[name] === null);
    const [field] = fields;
    if (field !== undefined) {
      const message =
        fields.length === 1 ? `${field} is required.` : `Required fields are missing: ${fields.join(', ')}.`;
      return violation('MISSING_FIELD', message, field, fields);
    }
    const parsed = schema.safeParse(sent);
    return parsed.success ? { value: parsed.data } : violationOf(parsed.error.issues[0]);
  };
}

/** The check of a query: its first fault in the order of the fields, a repeated parameter, an unknown one. */
export function queryValidator<S extends z.ZodObject<z.ZodRawShape, z.core.$strict>>(
  schema: S,
): (query: unknown) => Validated<z.output<S>> {
  return (query) => {
    const sent = query as Record<string, unknown>;
    const twice = Object.keys(schema.shape).find((name) => Array.isArray(sent[name]));
    if (twice !== undefined) return violation('INVALID_REQUEST', `${twice} must be sent once only.`, twice);
    const parsed = schema.safeParse(sent);
    return parsed.success ? { value: parsed.data } : violationOf(parsed.error.issues[0]);
  };
}

export const readNoQuery = queryValidator(z.strictObject({}));

function violationOf(issue: z.core.$ZodIssue | undefined) {
  if (issue?.code === 'unrecognized_keys') {
    const field = (issue.keys[0] ?? '').slice(0, LONGEST_NAME);
    return violation('INVALID_REQUEST', `${field} is not a field or parameter of this call.`, field);
  }
  const field = String(issue?.path[0] ?? 'body');
  const custom = issue?.code === 'custom' ? (issue.params?.['code'] as ErrorCode | undefined) : undefined;
  const wrongType = issue?.code === 'invalid_type' || issue?.code === 'invalid_union';
  const message = wrongType || issue === undefined ? `${field} is of the wrong type.` : issue.message;
  return violation(custom ?? 'INVALID_REQUEST', message, field);
}
