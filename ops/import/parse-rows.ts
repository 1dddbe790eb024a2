import type { z } from 'zod';
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
    else faults.push(...result.error.issues.flatMap((issue) => toFaults(row, issue)));
  }
  return { parsed, faults };
}

function toFaults(row: number, issue: z.core.$ZodIssue): Fault[] {
  const path = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      row,
      field: [...path, key].join('.'),
      message: 'is not a field of this format',
    }));
  }
  return [{ row, field: path.length === 0 ? null : path.join('.'), message: issue.message }];
}
