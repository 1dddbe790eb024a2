import { sql } from 'drizzle-orm';
import { z } from 'zod';
import type { DbOrTransaction } from '../../db/postgres/connect';
import { Refused } from '../../db/refused';
import type { DepositRule } from '../../domain/product';
import { printable, type Difference } from '../output';

export interface Fault {
  /** 1-based position in the file's list; null: the file as a whole. */
  readonly row: number | null;
  /** Name as in the file, a dot before each inner name; null: the row as a whole. */
  readonly field: string | null;
  readonly message: string;
  /** The refused value; absent when there is none, or it is no single value. */
  readonly value?: string | number | boolean | null;
  readonly line?: number;
}

/** A file that is refused: nothing of it was written. */
export class ImportRefused extends Error {
  override readonly name = 'ImportRefused';

  constructor(readonly faults: readonly Fault[]) {
    super(`${faults.length} ${faults.length === 1 ? 'fault' : 'faults'} found; nothing was written.`);
  }
}

const LONGEST_VALUE = 60;

export function faultLines(faults: readonly Fault[]): string {
  const lines = faults.map(({ row, line, field, message, value }) => {
    const at = line !== undefined ? `line ${line}` : row === null ? null : `row ${row}`;
    const place = [at, field].filter((part) => part !== null).join(', ');
    const text = JSON.stringify(value) ?? '';
    const short = text.length <= LONGEST_VALUE ? text : `${text.slice(0, LONGEST_VALUE - 1)}…`;
    return `${place && `${printable(place)}: `}${message}${short && ` (it is ${printable(short)})`}`;
  });
  return lines.join('\n');
}

export function refuseFile(message: string): never {
  throw new ImportRefused([{ row: null, field: null, message }]);
}

/** @throws ImportRefused with all faults in the order of the file, when there are any. */
export function refuseFaults(faults: readonly Fault[]): void {
  if (faults.length > 0) throw new ImportRefused(faults.toSorted((a, b) => (a.row ?? 0) - (b.row ?? 0)));
}

export interface ImportOptions {
  readonly actor: string;
  readonly action: string;
  readonly dryRun: boolean;
}

export interface ImportReport {
  readonly rows: number;
  /** What was created and updated, or with a dry run would be, in the order of the file. */
  readonly changes: readonly ReportedChange[];
}

export interface ReportedChange {
  readonly row: number;
  readonly subject: string;
  readonly change: string;
  readonly fields: readonly Difference[];
  readonly warning: string | null;
}

/** One text of what somebody should look at again; null when there is nothing. */
export function warnings(...found: readonly (string | null)[]): string | null {
  return found.filter((one) => one !== null).join('; ') || null;
}

/** A share below 1 % is most likely a fraction: 0.1 for 10 %. @param field its name in the file */
export function shareWarning(field: string, rule: DepositRule | null): string | null {
  const { basisPoints } = rule ?? { basisPoints: 0 };
  if (basisPoints === 0 || basisPoints >= 100) return null;
  return `its ${field}.percent is ${basisPoints / 100} %: did you mean ${basisPoints} %?`;
}

/** Postgres ended a statement that waited for too long: for a lock, or at all. */
const WAITED_TOO_LONG = new Set<unknown>(['55P03', '57014']);

/**
 * Imports run one after the other: two at once could each decide by data that the other changes.
 * @throws Refused when another one does not end in time
 */
export async function takeImportTurn(tx: DbOrTransaction): Promise<void> {
  try {
    await tx.execute(sql`select pg_advisory_xact_lock(hashtext('ops.import'))`);
  } catch (error) {
    const { cause } = error as { readonly cause?: { readonly code?: unknown } };
    if (!WAITED_TOO_LONG.has(cause?.code)) throw error;
    throw new Refused(
      'conflict',
      'Another import is under way, and takes long; nothing was changed. Try again when it has ended.',
    );
  }
}

export interface ParsedRow<T> {
  readonly row: number;
  readonly value: T;
}

/** What a fault of a name that the format does not have begins with. */
export const UNKNOWN_FIELD = 'is not a field of this format';

/** Checks the form of every row, naming every fault. @param identity fields that together occur once; a repetition names the last. */
export function checkForm<S extends z.ZodType>(
  rows: readonly unknown[],
  schema: S,
  identity: readonly string[],
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
    const names = identity.map((field) => (sent as Record<string, unknown>)[field]);
    if (names.every((name) => typeof name === 'string')) {
      const first = firstRowOf.get(JSON.stringify(names));
      if (first === undefined) firstRowOf.set(JSON.stringify(names), row);
      else faults.push({ row, field: identity.at(-1) ?? null, message: `is the same as in row ${first}` });
    }
    const result = schema.safeParse(sent);
    if (result.success) parsed.push({ row, value: result.data });
    else faults.push(...result.error.issues.flatMap((issue) => toFaults(row, issue, sent, schema)));
  }
  return { parsed, faults };
}

/** A field's texts, or those of its list, with their rows: also of rows that are at fault elsewhere, so that one try names all faults. */
export function valuesOf(rows: readonly unknown[], field: string, faults: readonly Fault[]) {
  const wrong = new Set(faults.map((fault) => `${fault.row} ${fault.field}`));
  return rows.flatMap((sent, index) => {
    const value = (sent as Readonly<Record<string, unknown>> | null)?.[field];
    const found: [string, unknown][] = Array.isArray(value)
      ? value.map((one: unknown, at) => [`${field}.${at}`, one])
      : [[field, value]];
    return found.flatMap(([name, one]): [number, string][] =>
      typeof one === 'string' && !wrong.has(`${index + 1} ${name}`) ? [[index + 1, one]] : [],
    );
  });
}

function toFaults(row: number, issue: z.core.$ZodIssue, sent: object, schema: z.ZodType): Fault[] {
  const path = issue.path.map(String);
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => {
      const meant = didYouMean(key, fieldsAt(schema, path));
      const hint = meant === undefined ? '' : `: did you mean ${[...path, meant].join('.')}?`;
      return { row, field: [...path, key].join('.'), message: `${UNKNOWN_FIELD}${hint}` };
    });
  const value = path.reduce<unknown>(
    (inner, name) =>
      typeof inner === 'object' && inner !== null && Object.hasOwn(inner, name)
        ? (inner as Record<string, unknown>)[name]
        : undefined,
    sent,
  );
  const single = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
  const field = path.length === 0 ? null : path.join('.');
  return [{ row, field, message: issue.message, ...(single && { value }) }];
}

function fieldsAt(schema: unknown, path: readonly string[]): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return fieldsAt(schema.unwrap(), path);
  if (schema instanceof z.ZodPipe) return fieldsAt(schema.in, path);
  if (!(schema instanceof z.ZodObject)) return [];
  const [first, ...rest] = path;
  return first === undefined ? Object.keys(schema.shape) : fieldsAt(schema.shape[first], rest);
}

const MOST_MISTAKES = 3;

function didYouMean(name: string, known: readonly string[]): string | undefined {
  const plain = (text: string) =>
    text
      .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .filter((word) => word !== '')
      .join('_');
  return known
    .map((one) => ({ one, mistakes: distance(plain(name), plain(one)) }))
    .filter(({ one, mistakes }) => mistakes <= Math.min(MOST_MISTAKES, one.length / 3))
    .toSorted((a, b) => a.mistakes - b.mistakes)[0]?.one;
}

function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [place, letter] of [...one].entries()) {
    const next = [place + 1];
    for (let at = 1; at < row.length; at += 1) {
      const changed = (row[at - 1] ?? 0) + (other[at - 1] === letter ? 0 : 1);
      next.push(Math.min(changed, (row[at] ?? 0) + 1, (next[at - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
