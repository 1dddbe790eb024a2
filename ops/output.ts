import Table from 'cli-table3';
import type { DeliveryPause } from '../db/notifications/hold';
import { Refused } from '../db/refused';

export interface Answer {
  readonly json: unknown;
  /** The text for people; a text with tables is made for lines of at most so many characters. */
  readonly text: string | ((most: number) => string);
  /** What is wrong with what it shows: after printing, the command ends with exit code 1. */
  readonly failure?: string | undefined;
}

export const textOf = (text: Answer['text'], most: number) => (typeof text === 'string' ? text : text(most));

/** The only answers that contain a key or secret. */
export function shownOnce<View>(what: 'key' | 'secret', value: string, said: string, view: View) {
  const notice = `This ${what} is shown once and cannot be read again: hand it over now.`;
  return { json: { ...view, [what]: value, notice }, text: `${said}\n\n  ${value}\n\n${notice}` };
}

/** @throws Refused when a thing that was named is missing. @param what such as `Quote qte_01K`. */
export function existing<T>(found: T | null, what: string): T {
  if (found === null) throw new Refused('not_found', `${what} does not exist.`);
  return found;
}

type Cell = string | number | boolean | Date | null | undefined;

/** What a terminal shows without breaking lines, unless `--wide` is given. */
export const WIDEST = 120;
/** The longest ids have 30 characters, `after ntf_…` six more: no column is narrower than that but by its texts. */
const LEAST_BROKEN = 36;
const MOST_LINES = 3;
/** cli-table3 compares each cell with all rows before it. */
const ROWS_AT_ONCE = 20;

/** A table with a heading; says so when it has no rows. @param most characters in a line. */
function table(head: readonly string[], rows: readonly (readonly Cell[])[], most: number): string {
  if (rows.length === 0) return 'None.';
  const cells = rows.map((row) => row.map(cell));
  const widths = head.map((name, at) => Math.max(name.length, ...cells.map((row) => row[at]?.length ?? 0)));
  const kept = fit(widths, most);
  const lines: string[] = [];
  for (let from = 0; from < cells.length; from += ROWS_AT_ONCE) {
    const drawn = new Table({
      head: from === 0 ? head.slice(0, kept) : [],
      colWidths: widths.slice(0, kept).map((width) => width + 2),
      wordWrap: true,
      style: { head: [], border: [], compact: true },
    });
    const part = cells.slice(from, from + ROWS_AT_ONCE);
    drawn.push(...part.map((row) => row.slice(0, kept).map((text, at) => cut(text, widths[at] ?? 0))));
    const more = drawn.toString().split('\n');
    // Between two parts there is no frame: neither the lower edge of one nor the upper edge of the next.
    if (from > 0) lines.splice(-1, 1, ...more.slice(1));
    else lines.push(...more);
  }
  const left = head.slice(kept);
  const leftOut = left.length === 0 ? '' : `\nNot shown, --wide does: ${left.join(', ')}.`;
  return lines.join('\n') + leftOut;
}

/** Fits columns into a line: breaks texts longer than an id, then leaves out the last columns. @returns how many are kept. */
function fit(widths: number[], most: number): number {
  const total = (kept: number) => widths.slice(0, kept).reduce((sum, width) => sum + width + 3, 1);
  let over = total(widths.length) - most;
  while (over > 0) {
    const longest = Math.max(...widths);
    if (longest <= LEAST_BROKEN) break;
    const taken = Math.min(over, longest - LEAST_BROKEN);
    widths[widths.indexOf(longest)] = longest - taken;
    over -= taken;
  }
  let kept = widths.length;
  while (kept > 1 && total(kept) > most) kept -= 1;
  return kept;
}

const cut = (text: string, width: number) =>
  text.length <= width * MOST_LINES ? text : `${text.slice(0, width * MOST_LINES - 1)}…`;

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name;

/** A thing as its JSON view, where that has the same fields: `notificationId` is `notification_id`. */
export const snakeCased = <One extends object>(one: One) =>
  Object.fromEntries(Object.entries(one).map(([name, value]) => [snakeCase(name), value])) as {
    [Name in keyof One & string as SnakeCase<Name>]: One[Name];
  };

export const snakeCase = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

type Shown<View> = { [Name in keyof View]: View[Name] extends Cell ? Name : never }[keyof View];

/** Things as a table; what a noun consists of is said once, by its JSON view. */
export function listed<One, View>(
  found: readonly One[],
  view: (one: One) => View,
  columns: Readonly<Record<string, Shown<View> | ((one: One) => Cell)>>,
): { readonly json: readonly View[]; readonly text: (most: number) => string } {
  const json = found.map(view);
  const rows = found.map((one, at) =>
    Object.values(columns).map((column) =>
      typeof column === 'function' ? column(one) : (json[at]?.[column] as Cell),
    ),
  );
  const head = Object.keys(columns);
  return { json, text: (most: number) => table(head, rows, most) };
}

export function facts(view: Readonly<Record<string, unknown>>): string {
  const entries = Object.entries(view);
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries.map(([name, value]) => `${name.padEnd(width)}  ${cell(value)}`).join('\n');
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (value instanceof Date) return utcText(value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return said(value);
}

/** `2026-11-22 14:05:12Z` */
export const utcText = (value: Date) => `${value.toISOString().slice(0, 19)}Z`.replace('T', ' ');

/** `live since 2026-11-22 14:05:12Z by jane` */
export const pauseText = ({ environment, pausedAt, pausedBy }: DeliveryPause) =>
  `${environment} since ${utcText(pausedAt)} by ${pausedBy}`;

/** How long ago a moment was. */
export const age = (moment: Date, now: Date) => timeText(now.getTime() - moment.getTime());

/** `45 s`, `12 min`, `7 h`, `3 d`: a time in milliseconds, rounded down; a negative one is `0 s`. */
export function timeText(ms: number): string {
  const seconds = Math.max(Math.floor(ms / 1_000), 0);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** Characters that control a terminal, or what is read there, and that JSON leaves as they are: a partner's answer may contain any. */
export function jsonText(document: unknown): string {
  return JSON.stringify(document, null, 2).replaceAll(/[\u007F-\u009F\u2028\u2029\p{Cf}]/gu, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** A stored text must not move the cursor of the terminal that shows it, nor turn round what is read there (U+202E). */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, '\uFFFD');
}

/** The same of a text whose lines we have broken ourselves: what is echoed in one, such as an argument, must not either. */
export function printableLines(text: string): string {
  return text.replaceAll(/(?![\n\t]|\r\n)[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, '\uFFFD');
}

export interface Difference {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

export const differences = (before: Record<string, unknown>, after: Record<string, unknown>) =>
  Object.entries(after)
    .map(([field, to]): Difference => ({ field, from: before[field] ?? null, to }))
    .filter(({ from, to }) => JSON.stringify(from) !== JSON.stringify(to));

/** `apr: 9.9 to 12.9` */
export const differenceText = ({ field, from, to }: Difference) => `${field}: ${said(from)} to ${said(to)}`;

const said = (value: unknown) => printable(typeof value === 'string' ? value : JSON.stringify(value));
