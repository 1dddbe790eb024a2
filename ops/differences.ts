import { printable } from './output';

/** A field in which two views of a thing differ, in the words of an import file. */
export interface Difference {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

/** In which fields a view differs from an earlier one. */
export const differences = (
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
) =>
  Object.entries(after)
    .map(([field, to]): Difference => ({ field, from: before[field] ?? null, to }))
    .filter(({ from, to }) => JSON.stringify(from) !== JSON.stringify(to));

/** `apr: 9.9 to 12.9` */
export const differenceText = ({ field, from, to }: Difference) => `${field}: ${said(from)} to ${said(to)}`;

const said = (value: unknown) => printable(typeof value === 'string' ? value : JSON.stringify(value));
