import type { Figures } from './rounds';

export interface Findings {
  /** The figures that are judged: they are printed first. */
  readonly figures: Figures;
  /** Absolute figures, side by side: a column for each contender. */
  readonly columns?: Readonly<Record<string, Figures>>;
  /** The most that figures may be. */
  readonly bounds?: Figures;
}

const startedAt = Date.now();

/** Progress, with the seconds since the start, on standard error. */
export const say = (line: string) =>
  console.error(`${((Date.now() - startedAt) / 1_000).toFixed(0)} s: ${line}`);

const rounded = (value: number | undefined) => Number((value ?? Number.NaN).toFixed(3));

/** Names of the figures that are above their bound. A figure that could not be measured is, too. */
export function brokenBounds({ figures, bounds = {} }: Findings): string[] {
  return Object.entries(bounds)
    .filter(([name, most]) => !((figures[name] ?? Number.NaN) <= most))
    .map(([name]) => name);
}

/** One JSON object, the names of absolute figures after their columns; or a line for each figure, and then the table. */
export function printFindings(found: Findings, json: boolean): void {
  const { figures, columns = {}, bounds = {} } = found;
  if (json) {
    const all = Object.entries(columns).flatMap(([column, values]) =>
      Object.entries(values).map(([name, value]) => [`${column}_${name}`, value] as const),
    );
    const entries = [...Object.entries(figures), ...all].map(([name, value]) => [name, rounded(value)]);
    console.log(JSON.stringify(Object.fromEntries(entries)));
    return;
  }
  const broken = new Set(brokenBounds(found));
  for (const [name, value] of Object.entries(figures)) {
    const bound = name in bounds ? ` (at most ${bounds[name]}${broken.has(name) ? ', BROKEN' : ''})` : '';
    console.log(`${name}: ${rounded(value)}${bound}`);
  }
  const contenders = Object.keys(columns);
  const rows = [...new Set(Object.values(columns).flatMap((column) => Object.keys(column)))];
  if (contenders.length === 0) return;
  console.log();
  // Many contenders do not fit beside one another.
  if (contenders.length > MOST_ACROSS) printTable(contenders, rows, (name, row) => columns[name]?.[row]);
  else printTable(rows, contenders, (row, name) => columns[name]?.[row]);
}

const MOST_ACROSS = 4;

function printTable(
  rows: readonly string[],
  columns: readonly string[],
  cell: (row: string, column: string) => number | undefined,
): void {
  const first = Math.max(...rows.map((row) => row.length));
  const line = (label: string, cells: readonly string[]) =>
    console.log(label.padEnd(first) + cells.map((text, at) => text.padStart(width(columns[at]))).join(''));
  const width = (column = '') => Math.max(column.length, 8) + 2;
  const text = (value: number | undefined) => (value === undefined ? '' : String(rounded(value)));
  line('', columns);
  for (const row of rows)
    line(
      row,
      columns.map((column) => text(cell(row, column))),
    );
}
