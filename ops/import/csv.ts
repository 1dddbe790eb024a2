import { checkRowCount } from './read-input';
import { refuseFile, type Fault } from './faults';
import { UNKNOWN_FIELD } from './parse-rows';

/** Which columns of a CSV file hold something other than text. */
export interface CsvTypes {
  readonly numbers: ReadonlySet<string>;
  readonly flags: ReadonlySet<string>;
}

/** A CSV file as rows. */
export interface CsvRows {
  /** A row that has too many or too few cells is null. */
  readonly rows: unknown[];
  /** The line that each begins in, 1-based. */
  readonly lines: readonly number[];
  /** Of the rows that are null. */
  readonly faults: readonly Fault[];
}

/**
 * Reads CSV (RFC 4180, a heading first) into the objects that JSON would hold: a dot in a heading leads into an inner
 * object, an empty cell is an absent field. What does not read as its type stays text, for the schema to refuse.
 * @throws ImportRefused when it is no CSV or a heading occurs twice.
 */
export function csvToRows(text: string, types: CsvTypes): CsvRows {
  const [heading, ...records] = parseCsv(text);
  if (heading === undefined) return refuseFile('The file is empty: a heading and rows are expected.');
  const head = heading.cells;
  if (head.length === 1 && head[0]?.includes(';'))
    refuseFile(
      'The heading has one cell only: the cells of a line must be separated by commas, not by semicolons.',
    );
  const twice = head.find((name, place) => head.indexOf(name) !== place);
  if (twice !== undefined) refuseFile(`The heading "${twice}" occurs twice.`);
  const faults: Fault[] = [];
  const rows = records.map(({ cells }, at) => {
    if (cells.length === head.length) return toRow(head, cells, types);
    const message = `has ${cells.length} cells where the heading has ${head.length}: is a comma inside a cell without quotes?`;
    faults.push({ row: at + 1, field: null, message });
    return null;
  });
  return { rows: checkRowCount(rows), lines: records.map(({ line }) => line), faults };
}

/** Whether a text begins like a CSV file of ours, and not like JSON. */
export const looksLikeCsv = (text: string) => /^\s*[^\s[{][^\n]*[,;]/.test(text);

/** Faults in words that fit CSV, at their lines; a wrong heading is named once. */
export function csvFaults(faults: readonly Fault[], lines: readonly number[]): Fault[] {
  const headings = new Set<string>();
  const told = faults.flatMap((fault): Fault[] => {
    const { row, field, message } = fault;
    if (field !== null && message.startsWith(UNKNOWN_FIELD)) {
      if (headings.has(field)) return [];
      headings.add(field);
      return [
        {
          row: null,
          line: 1,
          field,
          message: message.replace(UNKNOWN_FIELD, 'is no heading of this format'),
        },
      ];
    }
    const line = row === null ? undefined : lines[row - 1];
    const words = inCsvWords(message, field).replace(
      /\bin row (\d+)/,
      (_, other: string) => `in line ${lines[Number(other) - 1] ?? '?'}`,
    );
    // A line has one number: its row is that of no list that anybody sees.
    return [{ ...fault, row: null, message: words, ...(line !== undefined && { line }) }];
  });
  return told.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0));
}

/** JSON tells text from numbers by its quotes; a cell has none. */
function inCsvWords(message: string, field: string | null): string {
  if (message.startsWith('must be an object'))
    return `has columns of its own, with a dot in their headings, such as ${field}.${field?.endsWith('deposit') ? 'percent' : 'loan_amount'}`;
  return message
    .replaceAll(/ in quotes|, without quotes/g, '')
    .replaceAll(/such as "([^"]*)"/g, 'such as $1');
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

/** Records of cells, and the line that each begins in. A line without any text is passed over. */
function parseCsv(text: string): { readonly cells: string[]; readonly line: number }[] {
  const records: { cells: string[]; line: number }[] = [];
  let cells: string[] = [];
  let [line, began] = [1, 1];
  // A cell, quoted or not, and what ends it. Sticky: anything in between is no CSV.
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
