import type { Sql } from '../connect';
import type { quotes } from '../schema';
import { createSharedCommit, type SharedCommit } from '../shared-commit';

type Stored = typeof quotes.$inferInsert;

/** One quote as it is stored; `response` and `fitted` are JSON texts, stored as they are. */
export type QuoteRow = Omit<Required<Stored>, 'createdAt' | 'response' | 'fitted'> & {
  readonly response: string;
  readonly fitted: string;
};

/** One statement for any number of rows, so that it is prepared once per connection. */
const INSERT = `
  insert into quotes (quote_id, partner_id, key_id, environment, merchant_id, loan_pence, deposit_pence,
                      merchant_finance_url, merchant_reference, request_id, response, fitted)
  select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
                       $8::text[], $9::text[], $10::text[], $11::json[], $12::json[])`;

/** Inserts all rows in one statement, and so in one commit. */
export async function insertQuotes(sql: Sql, rows: readonly QuoteRow[]): Promise<void> {
  const column = <K extends keyof QuoteRow>(name: K) => rows.map((row) => row[name]);
  await sql.unsafe(
    INSERT,
    [
      column('quoteId'),
      column('partnerId'),
      column('keyId'),
      column('environment'),
      column('merchantId'),
      column('loanPence'),
      column('depositPence'),
      column('merchantFinanceUrl'),
      column('merchantReference'),
      column('requestId'),
      column('response'),
      column('fitted'),
    ] as never[],
    { prepare: true },
  );
}

/** SQLSTATE classes 22 (data exception) and 23 (integrity): the statement stored nothing, and a row is to blame. */
function isDataFault(error: unknown): boolean {
  return /^2[23]/.test(String((error as { code?: unknown }).code));
}

export interface QuoteWriterOptions {
  readonly sql: Sql;
  /** Longest wait for the commit, in milliseconds. */
  readonly deadlineMs: number;
}

/**
 * The durable insert of the quote path. Two statements at a time: while one waits for the disk the other is parsed
 * and planned; a third only makes batches smaller. 128 rows are about 300 KiB. 2,000 may wait: at the slowest commit
 * seen (50 ms) they are stored within the deadline.
 */
export function createQuoteWriter({ sql, deadlineMs }: QuoteWriterOptions): SharedCommit<QuoteRow> {
  return createSharedCommit<QuoteRow>({
    write: (rows) => insertQuotes(sql, rows),
    isDataFault,
    mostRows: 128,
    mostWaiting: 2_000,
    mostBatches: 2,
    deadlineMs,
  });
}
