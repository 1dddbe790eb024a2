import type { Sql } from '../postgres/connect';
import type { quotes } from '../schema';
import { createSharedCommit } from './shared-commit';

/**
 * The order of the values in a stored entry. Append only, because old quotes are read with it too.
 * `lender` is the key of the product's lender, whose integrations alone open applications for it.
 */
const FIELDS = [
  'productId',
  'version',
  'lender',
  'creditProduct',
  'depositPence',
  'loanPence',
  'monthlyRepaymentPence',
  'totalPayablePence',
] as const;
type FittedText = 'productId' | 'lender' | 'creditProduct';
type FittedNumber = Exclude<(typeof FIELDS)[number], FittedText>;
export type FittedProduct = Readonly<Record<FittedText, string> & Record<FittedNumber, number>>;

// The values in the order of FIELDS. A loop over names would cost as much as pricing.
function encodeFitted(fitted: readonly FittedProduct[]): string {
  return JSON.stringify(
    fitted.map((one) => [
      one.productId,
      one.version,
      one.lender,
      one.creditProduct,
      one.depositPence,
      one.loanPence,
      one.monthlyRepaymentPence,
      one.totalPayablePence,
    ]),
  );
}

export function decodeFitted(stored: unknown): FittedProduct[] {
  const entries = stored as readonly (readonly (string | number)[])[];
  return entries.map(
    (values) =>
      Object.fromEntries(FIELDS.map((field, at) => [field, values[at]])) as unknown as FittedProduct,
  );
}

/** A quote to be stored; `response` is the JSON text of the answer, stored byte for byte. */
export type QuoteRow = Omit<
  Required<typeof quotes.$inferInsert>,
  'createdAt' | 'usedDepositPence' | 'response' | 'fitted'
> & {
  readonly usedDepositPence: number;
  readonly response: string;
  readonly fitted: readonly FittedProduct[];
};

/** Control characters, which JSON escapes and which the contract allows in no other value. */
const VALUE_END = '\u001F';
const ROW_END = '\u001E';
const SEPARATORS = /[\u001e\u001f]/;

// One text for all rows, because parameters cost the API twice as much. OFFSET 0 keeps the planner from
// splitting a row for every column.
const INSERT = String.raw`
  insert into quotes (quote_id, partner_id, key_id, environment, merchant_id, loan_pence, deposit_pence,
    used_deposit_pence, merchant_finance_url, merchant_reference, request_id, response, fitted)
  select v[1], v[2], v[3], v[4], v[5], v[6]::bigint, v[7]::bigint, v[8]::bigint, v[9], v[10], v[11], v[12], v[13]
  from (select string_to_array(line, E'\x1f', '') as v from string_to_table($1, E'\x1e') as line offset 0) as lines`;

function lineOf(row: QuoteRow): string {
  const { merchantFinanceUrl, requestId } = row;
  const merchantReference = row.merchantReference ?? '';
  if (SEPARATORS.test(merchantFinanceUrl + merchantReference + requestId)) {
    // The SQLSTATE of faulty data, so that the other rows are stored.
    throw Object.assign(new TypeError('a value contains a separator'), { code: '22000' });
  }
  const whose = `${row.partnerId}${VALUE_END}${row.keyId}${VALUE_END}${row.environment}${VALUE_END}${row.merchantId}`;
  const asked = `${row.loanPence}${VALUE_END}${row.depositPence ?? ''}${VALUE_END}${row.usedDepositPence}`;
  const from = `${merchantFinanceUrl}${VALUE_END}${merchantReference}`;
  const answered = `${requestId}${VALUE_END}${row.response}${VALUE_END}${encodeFitted(row.fitted)}`;
  return `${row.quoteId}${VALUE_END}${whose}${VALUE_END}${asked}${VALUE_END}${from}${VALUE_END}${answered}`;
}

/**
 * Inserts all rows in one statement, and so in one commit.
 * @throws the error of Postgres, and `22000` (see lineOf)
 */
export async function insertQuotes(sql: Sql, rows: readonly QuoteRow[]): Promise<void> {
  await sql.unsafe(INSERT, [rows.map(lineOf).join(ROW_END)], { prepare: true });
}

/** The best of 1, 2, 3, 4 and 8 on two cores: one statement is prepared while another waits for the disk. */
export const QUOTE_STATEMENTS_AT_A_TIME = 2;
/** The best of 8, 12 and 20 at 64 connections that does not slow down 16. */
const WORTHWHILE_ROWS = 12;

/**
 * The durable insert of the quote path. 64 rows are 200 KiB. At the slowest commit seen, 50 ms, 2,000
 * rows are stored within the deadline.
 */
export const createQuoteWriter = ({ sql, deadlineMs }: { readonly sql: Sql; readonly deadlineMs: number }) =>
  createSharedCommit<QuoteRow>({
    write: (rows) => insertQuotes(sql, rows),
    isDataFault: (error) => /^2[23]/.test(String((error as { code?: unknown }).code)),
    mostRows: 64,
    mostWaiting: 2_000,
    mostBatches: QUOTE_STATEMENTS_AT_A_TIME,
    worthwhileRows: WORTHWHILE_ROWS,
    waitMs: 25,
    deadlineMs,
  });
