import type { Sql } from '../postgres/connect';
import type { quotes } from '../schema';
import { encodeFitted, type FittedProduct } from './fitted-products';

type Stored = typeof quotes.$inferInsert;

/** One quote as it is stored; `response` is the JSON text that is answered, stored byte for byte. */
export type QuoteRow = Omit<Required<Stored>, 'createdAt' | 'response' | 'fitted'> & {
  readonly response: string;
  readonly fitted: readonly FittedProduct[];
};

/** Control characters, which JSON escapes and the contract keeps out of every other value. */
const VALUE_END = '\u001F';
const ROW_END = '\u001E';
const SEPARATORS = /[\u001e\u001f]/;

/**
 * All rows as one text: a parameter for each value costs the API twice as much, and Postgres no less. OFFSET 0 keeps the
 * planner from taking each row apart once for every column.
 */
const INSERT = String.raw`
  insert into quotes (quote_id, partner_id, key_id, environment, merchant_id, loan_pence, deposit_pence,
    merchant_finance_url, merchant_reference, request_id, response, fitted)
  select v[1], v[2], v[3], v[4], v[5], v[6]::bigint, v[7]::bigint, v[8], v[9], v[10], v[11], v[12]
  from (select string_to_array(line, E'\x1f', '') as v from string_to_table($1, E'\x1e') as line offset 0) as lines`;

function lineOf(row: QuoteRow): string {
  const { merchantFinanceUrl, requestId } = row;
  const merchantReference = row.merchantReference ?? '';
  if (SEPARATORS.test(merchantFinanceUrl + merchantReference + requestId)) {
    // As Postgres would say of bad data, so that the other rows are stored without this one.
    throw Object.assign(new TypeError('a value holds a separator'), { code: '22000' });
  }
  const whose = `${row.partnerId}${VALUE_END}${row.keyId}${VALUE_END}${row.environment}${VALUE_END}${row.merchantId}`;
  const asked = `${row.loanPence}${VALUE_END}${row.depositPence ?? ''}${VALUE_END}${merchantFinanceUrl}${VALUE_END}${merchantReference}`;
  const answered = `${requestId}${VALUE_END}${row.response}${VALUE_END}${encodeFitted(row.fitted)}`;
  return `${row.quoteId}${VALUE_END}${whose}${VALUE_END}${asked}${VALUE_END}${answered}`;
}

/** Inserts all rows in one statement, and so in one commit. @throws what Postgres says, and `22000` (see lineOf) */
export async function insertQuotes(sql: Sql, rows: readonly QuoteRow[]): Promise<void> {
  await sql.unsafe(INSERT, [rows.map(lineOf).join(ROW_END)], { prepare: true });
}
