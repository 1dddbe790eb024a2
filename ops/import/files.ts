import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { repeatedNames, type JsonPath } from '../../contracts/validate';
import { printable } from '../output';
import { ImportRefused, refuseFaults, refuseFile, UNKNOWN_FIELD, type Fault } from './rows';

/** 20,000 products take about 8 MB of JSON. */
const MOST_BYTES = 10 * 1024 * 1024;
/** New rows take one to two milliseconds each: the largest file is written in under a minute. */
export const MOST_ROWS = 20_000;

/** Reads a whole file, or the given stream for `-`. @throws ImportRefused when it is too large or not UTF-8. */
export async function readText(path: string, stdin: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  const source = path === '-' ? stdin : createReadStream(path);
  try {
    for await (const chunk of source) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Buffer);
      size += bytes.length;
      if (size > MOST_BYTES) refuseFile(`The file is larger than ${MOST_BYTES / 1024 / 1024} MiB.`);
      chunks.push(bytes);
    }
  } catch (error) {
    if (error instanceof ImportRefused) throw error;
    refuseFile(`The file cannot be read: ${printable((error as Error).message)}`);
  }
  const bytes = Buffer.concat(chunks);
  const nul = bytes.indexOf(0);
  if (nul !== -1)
    refuseFile(`The file holds a NUL byte (at byte ${nul + 1}): it is not a text file in UTF-8.`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return refuseFile('The file is not valid UTF-8.');
  }
}

/** Parses JSON that must be a list of at most MOST_ROWS. @throws ImportRefused */
export function parseJson(text: string): unknown[] {
  if (text.trim() === '') refuseFile('The file is empty: a JSON list of objects is expected.');
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    return refuseFile(`The file is not valid JSON: ${printable((error as Error).message)}`);
  }
  if (!Array.isArray(parsed)) return refuseFile('The file must hold a JSON list: [ { … }, { … } ].');
  refuseFaults(repeatedNames(text).map(repeatedFault));
  return checkRowCount(parsed);
}

const repeatedFault = ([at, ...names]: JsonPath): Fault => ({
  row: Number(at) + 1,
  field: names.join('.'),
  message: 'is stated twice: leave one of them out',
});

function checkRowCount<T>(rows: T[]): T[] {
  if (rows.length === 0) refuseFile('The file holds no rows.');
  if (rows.length > MOST_ROWS)
    refuseFile(`The file holds ${rows.length} rows; at most ${MOST_ROWS} are taken at once.`);
  return rows;
}

export interface CsvTypes {
  readonly numbers: ReadonlySet<string>;
  readonly flags: ReadonlySet<string>;
}

export interface CsvRows {
  /** A row that has too many or too few cells is null. */
  readonly rows: unknown[];
  /** The line that each begins in, 1-based. */
  readonly lines: readonly number[];
  readonly faults: readonly Fault[];
}

export const looksLikeCsv = (text: string) => /^\s*[^\s[{][^\n]*[,;]/.test(text);

/**
 * Reads CSV (RFC 4180, a heading first) into the objects that JSON would contain: a dot in a heading leads into an inner
 * object, an empty cell is an absent field. A cell that does not read as its type stays text, which the schema refuses.
 * @throws ImportRefused when it is no CSV or a heading occurs twice.
 */
export function parseCsv(text: string, types: CsvTypes): CsvRows {
  const [heading, ...records] = recordsOf(text);
  if (heading === undefined) return refuseFile('The file is empty: a heading and rows are expected.');
  const head = heading.cells;
  if (head.length === 1 && head[0]?.includes(';'))
    refuseFile(
      'The heading has one cell only: the cells of a line must be separated by commas, not by semicolons.',
    );
  const twice = head.find((name, place) => head.indexOf(name) !== place);
  if (twice !== undefined) refuseFile(`The heading "${printable(twice)}" occurs twice.`);
  const faults: Fault[] = [];
  const rows = records.map(({ cells }, at) => {
    if (cells.length === head.length) return toRow(head, cells, types);
    const message = `has ${cells.length} cells where the heading has ${head.length}: is a comma inside a cell without quotes?`;
    faults.push({ row: at + 1, field: null, message });
    return null;
  });
  return { rows: checkRowCount(rows), lines: records.map(({ line }) => line), faults };
}

function recordsOf(text: string): { readonly cells: string[]; readonly line: number }[] {
  const records: { cells: string[]; line: number }[] = [];
  let cells: string[] = [];
  let [line, began] = [1, 1];
  // A cell, quoted or not, and its end. The expression is sticky: anything between two cells is no CSV.
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|\n|\r|$)/gy;
  while (cell.lastIndex < text.length || cells.length > 0) {
    const match = cell.exec(text);
    if (match === null)
      return refuseFile(`The file is not valid CSV in line ${line}: a quote is out of place.`);
    cells.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '');
    line += match[0].match(/\r\n|\n|\r/g)?.length ?? 0;
    if (match[3] === ',') continue;
    if (cells.length > 1 || cells[0] !== '') records.push({ cells, line: began });
    [cells, began] = [[], line];
  }
  return records;
}

function toRow(head: readonly string[], record: readonly string[], types: CsvTypes): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (const [place, name] of head.entries()) {
    const cell = record[place] ?? '';
    if (cell === '') continue;
    const [outer = '', inner] = name.split(/\.(.*)/s);
    if (inner === undefined) define(row, outer, typed(cell, name, types));
    else {
      if (!Object.hasOwn(row, outer)) define(row, outer, {});
      const object = row[outer];
      if (typeof object === 'object' && object !== null) define(object, inner, cell);
    }
  }
  return row;
}

/** Unlike an assignment, `__proto__` as a heading becomes a field like any other, which the schema refuses. */
function define(row: object, name: string, value: unknown): void {
  Object.defineProperty(row, name, { value, enumerable: true, writable: true, configurable: true });
}

function typed(cell: string, name: string, { numbers, flags }: CsvTypes): unknown {
  if (numbers.has(name) && /^\d{1,15}$/.test(cell)) return Number(cell);
  if (flags.has(name) && (cell === 'true' || cell === 'false')) return cell === 'true';
  return cell;
}

/** Faults in words that fit CSV, at their lines; a wrong heading is named once. */
export function csvFaults(faults: readonly Fault[], lines: readonly number[]): Fault[] {
  const headings = new Set<string>();
  const inCsv = faults.flatMap((fault): Fault[] => {
    const { row, field, message } = fault;
    if (field !== null && message.startsWith(UNKNOWN_FIELD)) {
      if (headings.has(field)) return [];
      headings.add(field);
      const words = message.replace(UNKNOWN_FIELD, 'is no heading of this format');
      return [{ row: null, line: 1, field, message: words }];
    }
    const line = row === null ? undefined : lines[row - 1];
    const words = inCsvWords(message, field).replace(
      /\bin row (\d+)/,
      (_, other: string) => `in line ${lines[Number(other) - 1] ?? '?'}`,
    );
    return [{ ...fault, row: null, message: words, ...(line !== undefined && { line }) }];
  });
  return inCsv.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0));
}

/** JSON marks text by quotes; a cell does not. */
function inCsvWords(message: string, field: string | null): string {
  if (message.startsWith('must be an object'))
    return `has columns of its own, with a dot in their headings, such as ${field}.${field?.endsWith('deposit') ? 'percent' : 'loan_amount'}`;
  return message
    .replaceAll(/ in quotes|, without quotes/g, '')
    .replaceAll(/such as "([^"]*)"/g, 'such as $1');
}
