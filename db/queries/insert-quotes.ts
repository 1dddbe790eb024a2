import type { Sql } from '../connect';
import type { quotes } from '../schema';
import { encodeFitted, type FittedProduct } from './fitted-products';
import { createSharedCommit, type SharedCommit } from '../shared-commit';

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
  const values: (string | number | null)[] = [];
  for (const row of rows) {
    values.push(row.quoteId, row.partnerId, row.keyId, row.environment, row.merchantId, row.loanPence);
    values.push(row.depositPence, row.merchantFinanceUrl, row.merchantReference, row.requestId);
    values.push(row.response, encodeFitted(row.fitted));
  }
  await sql.unsafe(statementFor(rows.length), values, { prepare: true });
}

/** SQLSTATE classes 22 (data exception) and 23 (integrity): the statement stored nothing, and a row is to blame. */
function isDataFault(error: unknown): boolean {
  return /^2[23]/.test(String((error as { code?: unknown }).code));
}

/**
 * While one statement waits for the disk the other is read, parsed and run. Measured on two idle cores against 1, 3, 4 and
 * 8: more make statements smaller, and cost more than they win (docs/operations.md, "Speed").
 */
export const QUOTE_STATEMENTS_AT_A_TIME = 2;
/** Of 8, 12 and 20 the best at 64 connections that does not harm 16. */
const WORTHWHILE_ROWS = 12;

export interface QuoteWriterOptions {
  readonly sql: Sql;
  /** Longest wait for the commit, in milliseconds. */
  readonly deadlineMs: number;
}

/**
 * The durable insert of the quote path. 64 rows are about 200 KiB, and as many texts to prepare. 2,000 may wait: at
 * the slowest commit seen (50 ms) they are stored within the deadline.
 */
export function createQuoteWriter({ sql, deadlineMs }: QuoteWriterOptions): SharedCommit<QuoteRow> {
  return createSharedCommit<QuoteRow>({
    write: (rows) => insertQuotes(sql, rows),
    isDataFault,
    mostRows: 64,
    mostWaiting: 2_000,
    mostBatches: QUOTE_STATEMENTS_AT_A_TIME,
    worthwhileRows: WORTHWHILE_ROWS,
    deadlineMs,
  });
}
