import { z } from 'zod';
import { didYouMean } from './did-you-mean';
import type { Fault } from './faults';

/** A row that has the right form. */
export interface ParsedRow<T> {
  /** 1-based. */
  readonly row: number;
  readonly value: T;
}

/**
 * Checks the form of every row; every fault of every row is named.
 * @param unitOf names what must not occur twice in a file; null when the row does not say.
 */
export function checkForm<S extends z.ZodType>(
  rows: readonly unknown[],
  schema: S,
  unitOf: (
    row: Readonly<Record<string, unknown>>,
  ) => { readonly field: string; readonly unit: string } | null,
): { readonly parsed: ParsedRow<z.output<S>>[]; readonly faults: Fault[] } {
  const parsed: ParsedRow<z.output<S>>[] = [];
  const faults: Fault[] = [];
  const firstRowOf = new Map<string, number>();
  for (const [index, sent] of rows.entries()) {
    const row = index + 1;
    if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) {
      faults.push({ row, field: null, message: 'must be an object: { … }' });
      continue;
    }
    const named = unitOf(sent as Record<string, unknown>);
    const first = named === null ? undefined : firstRowOf.get(named.unit);
    if (named !== null && first !== undefined) {
      faults.push({ row, field: named.field, message: `is the same as in row ${first}` });
    } else if (named !== null) firstRowOf.set(named.unit, row);
    const result = schema.safeParse(sent);
    if (result.success) parsed.push({ row, value: result.data });
    else faults.push(...result.error.issues.flatMap((issue) => toFaults(row, issue, sent, schema)));
  }
  return { parsed, faults };
}

function toFaults(row: number, issue: z.core.$ZodIssue, sent: object, schema: z.ZodType): Fault[] {
  const path = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => {
      const meant = didYouMean(key, fieldsAt(schema, path));
      const hint = meant === null ? '' : `: did you mean ${[...path, meant].join('.')}?`;
      return { row, field: [...path, key].join('.'), message: `${UNKNOWN_FIELD}${hint}` };
    });
  }
  return [
    { row, field: path.length === 0 ? null : path.join('.'), message: issue.message, ...valueAt(sent, path) },
  ];
}

/** Names of the fields of the object that a path leads to; none where there is no object. */
function fieldsAt(schema: unknown, path: readonly string[]): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return fieldsAt(schema.unwrap(), path);
  if (schema instanceof z.ZodPipe) return fieldsAt(schema.in, path);
  if (!(schema instanceof z.ZodObject)) return [];
  const [first, ...rest] = path;
  return first === undefined ? Object.keys(schema.shape) : fieldsAt(schema.shape[first], rest);
}

/** What a fault of a name that the format does not have begins with. */
export const UNKNOWN_FIELD = 'is not a field of this format';

/** The single value at a place; nothing when there is none. */
function valueAt(sent: object, path: readonly string[]): Pick<Fault, 'value'> {
  const found = path.reduce<unknown>(
    (inner, name) =>
      typeof inner === 'object' && inner !== null && Object.hasOwn(inner, name)
        ? (inner as Record<string, unknown>)[name]
        : undefined,
    sent,
  );
  const single = typeof found === 'string' || typeof found === 'number' || typeof found === 'boolean';
  return single ? { value: found } : {};
}
