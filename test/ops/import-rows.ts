import type { OpsUnderTest } from './run';

/** A product as an import file has it. */
export const PRODUCT_ROW = {
  merchant_id: 'M300001',
  credit_product: 'Classic 12',
  lender: 'lender_a',
  number_of_repayments: 12,
  apr: '9.9',
  minimum_loan_amount: '250.00',
  maximum_loan_amount: '25000.00',
};

type Noun = 'products' | 'merchants';

/** Imports rows, or a file's text, from standard input. */
export const importRows = (ops: OpsUnderTest, noun: Noun, rows: unknown, ...options: string[]) =>
  ops.run(
    [noun, 'import', '-', '--json', ...options],
    typeof rows === 'string' ? rows : JSON.stringify(rows),
  );

/** Faults of a refused import as `row field message`. */
export async function faultsOf(ops: OpsUnderTest, noun: Noun, rows: unknown): Promise<string[]> {
  const outcome = await importRows(ops, noun, rows);
  expect(outcome.code).toBe(1);
  const { faults } = outcome.json().error as {
    faults: { row: number | null; field: string | null; message: string }[];
  };
  return faults.map(({ row, field, message }) => `${row} ${field} ${message}`);
}
