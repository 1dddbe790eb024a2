import { printable } from '../output';
import { checkRowCount } from './files';
import { refuseFile, UNKNOWN_FIELD, type Fault } from './rows';

/** What the cells of a column are; those of the others are text. */
type CsvType = 'whole' | 'flag' | 'amount' | 'percent' | 'day';
export type CsvTypes = Readonly<Record<string, CsvType>>;

export interface CsvRows {
  /** A row that has too many cells is null. */
  readonly rows: unknown[];
  /** The line that each begins in, 1-based. */
  readonly lines: readonly number[];
  readonly faults: readonly Fault[];
}

export const looksLikeCsv = (text: string) => /^\s*[^\s[{][^\n]*[,;\t]/.test(text) || SEP_LINE.test(text);

/** Excel reads this line, and no other program does. */
const SEP_LINE = /^\s*"?sep=/i;

const OTHER_SEPARATORS = { ';': 'semicolons', '\t': 'tabs', '|': 'vertical bars' } as const;

/**
 * Reads CSV (RFC 4180, a heading first) into the objects that JSON would contain: a dot in a heading leads into an inner
 * object, an empty cell is an absent field. What Excel makes of a file is read where it has one meaning: `TRUE`, `250` for
 * 250.00, rows without cells, columns without a heading, missing cells at the end of a row. A cell that does not read as its
 * type stays text, which the schema refuses.
 * @throws ImportRefused when it is no CSV or a heading occurs twice.
 */
export function parseCsv(text: string, types: CsvTypes): CsvRows {
  if (SEP_LINE.test(text))
    refuseFile('Line 1 (sep=) is for Excel alone: delete it, and separate the cells of a line by commas.');
  const [line = ''] = text.split(/[\r\n]/, 1);
  for (const [separator, words] of Object.entries(OTHER_SEPARATORS))
    if (!line.includes(',') && line.includes(separator))
      refuseFile(
        `The heading has one cell only: the cells of a line must be separated by commas, not by ${words}.`,
      );
  const [heading, ...records] = recordsOf(text);
  if (heading === undefined) return refuseFile('The file is empty: a heading and rows are expected.');
  const head = heading.cells.map((name) => name.trim());
  const twice = head.find((name, place) => name !== '' && head.indexOf(name) !== place);
  if (twice !== undefined) refuseFile(`The heading "${printable(twice)}" occurs twice.`);
  const faults: Fault[] = [];
  const width = head.findLastIndex((name) => name !== '') + 1;
  if (width === 1 && records.some(({ cells }) => cells.slice(1).some((cell) => cell !== '')))
    refuseFile('Line 1 must have the field names: delete what is above them, such as the name of a table.');
  const rows = records.map(({ cells }, at) => {
    for (const [place, cell] of cells.entries()) {
      const field = head[place] ?? '';
      const message = types[field] === undefined ? sheetText(cell) : null;
      if (message !== null) faults.push({ row: at + 1, field, message, value: cell });
    }
    const without = cells.findIndex((cell, place) => cell !== '' && (head[place] ?? '') === '');
    if (without === -1) return toRow(head, cells, types);
    const message =
      without < width
        ? `has a cell in column ${without + 1}, which has no heading`
        : `has ${cells.length} cells where the heading has ${width}: is a comma inside a cell without quotes?`;
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
    if (cells.some((one) => one.trim() !== '')) records.push({ cells, line: began });
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
      if (typeof object === 'object' && object !== null) define(object, inner, typed(cell, name, types));
    }
  }
  return row;
}

/** Unlike an assignment, `__proto__` as a heading becomes a field like any other, which the schema refuses. */
function define(row: object, name: string, value: unknown): void {
  Object.defineProperty(row, name, { value, enumerable: true, writable: true, configurable: true });
}

function typed(cell: string, name: string, types: CsvTypes): unknown {
  switch (Object.hasOwn(types, name) ? types[name] : undefined) {
    case 'whole':
      return /^\d{1,15}$/.test(cell) ? Number(cell) : cell;
    case 'flag':
      return /^(true|false)$/i.test(cell) ? cell.toLowerCase() === 'true' : cell;
    case 'amount':
      // The pence that a spreadsheet leaves out.
      if (/^\d+$/.test(cell)) return `${cell}.00`;
      return /^\d+\.\d$/.test(cell) ? `${cell}0` : cell;
    case 'percent':
      return cell.replace(/^(\d+)\.(\d*?)0+$/, (_, whole: string, rest: string) =>
        rest === '' ? whole : `${whole}.${rest}`,
      );
    case 'day':
    case undefined:
      return cell;
  }
}

/** What a spreadsheet has made of a cell of text. */
function sheetText(cell: string): string | null {
  if (/^#(#+|N\/A|NV|[A-Z/0]+[!?])$/.test(cell)) return 'the spreadsheet shows an error there';
  if (/^\d([.,]\d+)?E\+\d+$/.test(cell))
    return 'was taken for a number by the spreadsheet: give the column the format Text';
  return cell.startsWith('=') ? 'is a formula: save the file with values instead' : null;
}

/** Forms that spreadsheets give to values, and what to write instead; the first that fits. */
const SHEET_FORMS: readonly (readonly [form: RegExp, types: readonly CsvType[], remedy: string])[] = [
  [
    /^#+$|^#[A-Z/0]+[!?]?$/,
    ['whole', 'flag', 'amount', 'percent', 'day'],
    'the spreadsheet shows an error there',
  ],
  [
    /^[-+]?\d+([.,]\d+)?E[-+]?\d+$/i,
    ['whole', 'amount', 'percent'],
    'the spreadsheet has cut the number: give the column a number format and write all digits',
  ],
  [
    /^\d{1,3}([,’'\p{Zs}]\d{3})+([.,]\d{1,2})?$|^\d{1,3}(\.\d{3})+(\.\d{3}|,\d{1,2})$/u,
    ['whole', 'amount'],
    'write it without separators of thousands, and a point before the pence',
  ],
  [/^\d+,\d+$/, ['amount', 'percent'], 'write a point for the decimal comma'],
  [/%$/, ['percent'], 'write it without the sign, 10 for 10 %'],
  [/^[£$€]|[£$€]$/, ['amount'], 'write it without the currency'],
  [/^\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}/, ['day'], 'give the column the format yyyy-mm-dd'],
  [/^\d{1,2}[- ][A-Za-z]{3,}[- ]\d+$|^\d{5}$/, ['day'], 'give the column the format yyyy-mm-dd'],
];

function remedyFor({ field, value }: Fault, types: CsvTypes): string {
  const type = field !== null && Object.hasOwn(types, field) ? types[field] : undefined;
  if (type === undefined || typeof value !== 'string') return '';
  const found = SHEET_FORMS.find(([form, of]) => of.includes(type) && form.test(value));
  return found === undefined ? '' : `: ${found[2]}`;
}

/** Faults in words that fit CSV, at their lines; a wrong heading is named once. */
export function csvFaults(faults: readonly Fault[], lines: readonly number[], types: CsvTypes): Fault[] {
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
    return [
      { ...fault, row: null, message: words + remedyFor(fault, types), ...(line !== undefined && { line }) },
    ];
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
