import { checkRowCount } from './read-input';
import { ImportRefused } from './faults';

/** Which columns of a CSV file hold something other than text. */
export interface CsvTypes {
  readonly numbers: ReadonlySet<string>;
  readonly flags: ReadonlySet<string>;
}

/**
 * Reads CSV (RFC 4180, a heading first) into the objects that JSON would hold: a dot in a heading leads into an inner
 * object, an empty cell is an absent field. What does not read as its type stays text, for the schema to refuse.
 * @throws ImportRefused when it is no CSV or a heading occurs twice.
 */
export function csvToRows(text: string, types: CsvTypes): unknown[] {
  const [head, ...records] = parseCsv(text);
  if (head === undefined) return refuse('The file is empty: a heading and rows are expected.');
  const twice = head.find((name, place) => head.indexOf(name) !== place);
  if (twice !== undefined) refuse(`The heading "${twice}" occurs twice.`);
  for (const [place, record] of records.entries()) {
    if (record.length !== head.length) {
      const message = `has ${record.length} cells where the heading has ${head.length}`;
      throw new ImportRefused([{ row: place + 1, field: null, message }]);
    }
  }
  return checkRowCount(records.map((record) => toRow(head, record, types)));
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

/** Records of cells. A line without any text is passed over. */
function parseCsv(text: string): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  // A cell, quoted or not, and what ends it. Sticky: anything in between is no CSV.
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|\n|\r|$)/gy;
  while (cell.lastIndex < text.length || record.length > 0) {
    const at = cell.lastIndex;
    const match = cell.exec(text);
    if (match === null)
      return refuse(`The file is not valid CSV near character ${at + 1}: a quote is out of place.`);
    record.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '');
    if (match[3] === ',') continue;
    if (record.length > 1 || record[0] !== '') records.push(record);
    record = [];
  }
  return records;
}

function refuse(message: string): never {
  throw new ImportRefused([{ row: null, field: null, message }]);
}
