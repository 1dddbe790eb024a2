import type { z } from 'zod';
import { refusal, type AnyErrorCode, type GivenTo, type Refusal } from './errors';
import type { Examples } from './fields';

/** Characters of a caller's own field name that an answer repeats. */
export const LONGEST_NAME = 64;

export type Validated<T> = { readonly value: T } | { readonly violation: Refusal };

export const violation = <Code extends AnyErrorCode>(code: Code, ...given: GivenTo<Code>) => ({
  violation: refusal(code, ...given),
});

/** PHP's clients send a key as it is, and HAProxy takes a line feed for the end of a line. */
const NO_BODY = 'The body is empty: was it sent? A line break at the end of your key would cut it off.';

/** Of a call that takes no body. */
export const BODY_NOT_EMPTY = refusal('INVALID_REQUEST', 'The body must be empty.');

/**
 * Builds the check of a body: an object, required fields (all that are absent or null), then formats, of
 * which the first fault in the order of the fields is reported. A strict schema refuses unknown fields.
 */
export function bodyValidator<S extends z.ZodObject>(schema: S): (body: unknown) => Validated<z.output<S>> {
  const required = Object.entries(schema.shape)
    .filter(([, field]) => !(field as z.ZodType).safeParse(undefined).success)
    .map(([name]) => name);
  return (body) => {
    if (body === undefined) return violation('INVALID_REQUEST', NO_BODY);
    if (typeof body !== 'object' || body === null || Array.isArray(body))
      return violation('INVALID_REQUEST', 'The body must be a JSON object.');
    const sent = body as Record<string, unknown>;
    const missing = required.filter((name) => sent[name] === undefined || sent[name] === null);
    if (missing.length > 0) return violation('MISSING_FIELD', missing);
    const parsed = schema.safeParse(sent);
    return parsed.success ? { value: parsed.data } : violationOf(parsed.error.issues[0]);
  };
}

/** The body of a request, for its route and for the document. */
export interface RequestBody {
  /** One of these. */
  readonly schemas: readonly z.ZodObject[];
  readonly examples: Examples;
  readonly read: (body: unknown) => Validated<unknown>;
}

export const requestBody = <S extends z.ZodObject>(schema: S, examples: Examples) => ({
  schemas: [schema],
  examples,
  read: bodyValidator(schema),
});

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

function violationOf(issue: z.core.$ZodIssue | undefined) {
  if (issue?.code === 'unrecognized_keys') {
    const field = (issue.keys[0] ?? '').slice(0, LONGEST_NAME);
    return violation('INVALID_REQUEST', `${field} is not a field or parameter of this call.`, field);
  }
  const field = String(issue?.path[0] ?? 'body');
  const custom =
    issue?.code === 'custom' ? (issue.params?.['code'] as 'INVALID_AMOUNT_FORMAT' | undefined) : undefined;
  // Of those that zod words itself.
  const ofType = issue?.code === 'invalid_type' && issue.message.startsWith('Invalid input');
  const message = ofType
    ? `${field} must be of type ${issue.expected}.`
    : (issue?.message ?? `${field} is invalid.`);
  return violation(custom ?? 'INVALID_REQUEST', message, field);
}

/** Where a name stands in JSON: names of fields, and positions in lists from 0. */
export type JsonPath = readonly (string | number)[];

interface Open {
  /** Names so far; null for a list. */
  readonly names: Set<string> | null;
  /** Present name, or position in the list. */
  at: string | number;
}

/**
 * The names that an object of JSON states again, in the order of the text. `JSON.parse` keeps the last
 * value without a word, other readers the first.
 * @param text valid JSON
 * @param deepest objects further in than this many levels are not looked at
 */
export function repeatedNames(text: string, deepest = Number.POSITIVE_INFINITY): JsonPath[] {
  const found: JsonPath[] = [];
  const open: Open[] = [];
  let string = '';
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case 0x22 /* " */: {
        const last = endOfString(text, at);
        string = text.slice(at + 1, last);
        at = last;
        break;
      }
      case 0x7b /* { */:
        open.push({ names: new Set(), at: '' });
        break;
      case 0x5b /* [ */:
        open.push({ names: null, at: 0 });
        break;
      case 0x7d /* } */:
      case 0x5d /* ] */:
        open.pop();
        break;
      case 0x2c /* , */: {
        const list = open.at(-1);
        if (typeof list?.at === 'number') list.at += 1;
        break;
      }
      // The string before a colon is a name.
      case 0x3a /* : */: {
        const object = open.at(-1);
        if (object?.names == null || open.length > deepest) break;
        object.at = string.includes('\\') ? (JSON.parse(`"${string}"`) as string) : string;
        if (object.names.has(object.at)) found.push(open.map((one) => one.at));
        object.names.add(object.at);
        break;
      }
      default:
    }
  }
  return found;
}

// The position of the quote that ends a string: the first one after an even number of backslashes.
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c /* \ */) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
}
