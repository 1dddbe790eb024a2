import type { Sql } from '../connect';
import type { quotes } from '../schema';
import { encodeFitted, type FittedProduct } from './fitted-products';

type Stored = typeof quotes.$inferInsert;

/** One quote as it is stored; `response` is the JSON text that is answered, stored byte for byte. */
export type QuoteRow = Omit<Required<Stored>, 'createdAt' | 'response' | 'fitted'> & {
  readonly response: string;
  readonly fitted: readonly FittedProduct[];
};

const COLUMNS = [
  'quote_id',
  'partner_id',
  'key_id',
  'environment',
  'merchant_id',
  'loan_pence',
  'deposit_pence',
  'merchant_finance_url',
  'merchant_reference',
  'request_id',
  'response',
  'fitted',
] as const;

/** The values of rows, one row after the other, each in the order of the columns. */
function valuesOf(rows: readonly QuoteRow[]): (string | number | null)[] {
  const values: (string | number | null)[] = [];
  for (const row of rows) {
    values.push(row.quoteId, row.partnerId, row.keyId, row.environment, row.merchantId, row.loanPence);
    values.push(row.depositPence, row.merchantFinanceUrl, row.merchantReference, row.requestId);
    values.push(row.response, encodeFitted(row.fitted));
  }
  return values;
}

/** Texts by number of rows. Each is prepared once per connection; values in lists spare the escaping of arrays. */
const statements: string[] = [];

function statementFor(rows: number): string {
  const width = COLUMNS.length;
  const list = (row: number) =>
    `(${COLUMNS.map((_column, place) => `$${row * width + place + 1}`).join(', ')})`;
  const lists = Array.from({ length: rows }, (_row, at) => list(at)).join(', ');
  return (statements[rows] ??= `insert into quotes (${COLUMNS.join(', ')}) values ${lists}`);
}

/** Inserts all rows in one statement, and so in one commit. At most 5,000 rows: Postgres counts parameters in 16 bits. */
export async function insertQuotes(sql: Sql, rows: readonly QuoteRow[]): Promise<void> {
  await sql.unsafe(statementFor(rows.length), valuesOf(rows), { prepare: true });
}
