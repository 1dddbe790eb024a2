import Table from 'cli-table3';
import type { Answer } from './call';
import type { Fault } from './import/faults';

export type Cell = string | number | boolean | Date | null | undefined;

/** A table with a heading; says so when it has no rows. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  if (rows.length === 0) return 'None.';
  const drawn = new Table({ head: [...head], style: { head: [], border: [], compact: true } });
  drawn.push(...rows.map((row) => row.map(cell)));
  return drawn.toString();
}

/** Fields of a JSON view that a cell can show as they are. */
type Shown<View> = { [Name in keyof View]: View[Name] extends Cell ? Name : never }[keyof View];

/** Columns by their headings, in their order: a field of the noun's JSON view, or what is made of the thing itself. */
export type Columns<One, View> = Readonly<Record<string, Shown<View> | ((one: One) => Cell)>>;

/** Things as a table; what a noun consists of is said once, by its JSON view. */
export function listed<One, View>(
  found: readonly One[],
  view: (one: One) => View,
  columns: Columns<One, View>,
): Answer & { readonly json: readonly View[] } {
  const json = found.map(view);
  const rows = found.map((one, at) =>
    Object.values(columns).map((column) =>
      typeof column === 'function' ? column(one) : (json[at]?.[column] as Cell),
    ),
  );
  return { json, text: table(Object.keys(columns), rows) };
}

/** Names and values, one to a line. */
export function facts(entries: readonly (readonly [string, Cell])[]): string {
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries.map(([name, value]) => `${name.padEnd(width)}  ${cell(value)}`).join('\n');
}

/** Faults of a file, one to a line. */
export function faultLines(faults: readonly Fault[]): string {
  return faults.map(({ row, field, message }) => `${place(row, field)}${message}`).join('\n');
}

function place(row: number | null, field: string | null): string {
  const parts = [row === null ? null : `row ${row}`, field].filter((part) => part !== null);
  return parts.length === 0 ? '' : `${printable(parts.join(', '))}: `;
}

function cell(value: Cell): string {
  if (value === null || value === undefined) return '-';
  if (value instanceof Date) return moment(value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return printable(String(value));
}

/** `2026-11-22 14:05:12Z` */
export const moment = (value: Date) => `${value.toISOString().slice(0, 19)}Z`.replace('T', ' ');

/** `45 s`, `12 min`, `7 h`, `3 d`: how long ago a moment was, rounded down. */
export function age(moment: Date, now: Date): string {
  const seconds = Math.max(Math.floor((now.getTime() - moment.getTime()) / 1_000), 0);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** A stored text must not move the cursor of the terminal that shows it. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cs}\u2028\u2029]/gu, '\uFFFD');
}
