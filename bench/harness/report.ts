import type { Figures } from './rounds';

export interface Findings {
  /** The figures that are judged: they are printed first. */
  readonly figures: Figures;
  /** Absolute figures, side by side: a column for each contender. */
  readonly columns?: Readonly<Record<string, Figures>>;
  /** The most that figures may be. */
  readonly bounds?: Figures;
  /** What is printed with `--json` in place of figures and columns. */
  readonly json?: object;
}

const MOST_ACROSS = 4;

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
  if (json && found.json !== undefined) {
    console.log(
      JSON.stringify(found.json, (_, value: unknown) => (typeof value === 'number' ? rounded(value) : value)),
    );
    return;
  }
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
  const table: Record<string, Record<string, number>> = {};
  for (const [column, values] of Object.entries(columns))
    for (const [row, value] of Object.entries(values)) {
      // Many contenders do not fit beside one another.
      const [at, across] = contenders.length > MOST_ACROSS ? [column, row] : [row, column];
      (table[at] ??= {})[across] = rounded(value);
    }
  if (contenders.length > 0) console.table(table);
}
