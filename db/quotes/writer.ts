import type { Sql } from '../postgres/connect';
import { insertQuotes, type QuoteRow } from './insert';
import { createSharedCommit, type SharedCommit } from '../postgres/shared-commit';

/**
 * While one statement waits for the disk the other is read, parsed and run. Measured on two idle cores against 1, 3, 4 and
 * 8: more make statements smaller, and cost more than they gain.
 */
export const QUOTE_STATEMENTS_AT_A_TIME = 2;
/** Of 8, 12 and 20 the best at 64 connections that does not harm 16. */
const WORTHWHILE_ROWS = 12;

/**
 * The durable insert of the quote path. 64 rows are about 200 KiB, and as many texts to prepare. 2,000 may wait: at
 * the slowest commit seen (50 ms) they are stored within the deadline.
 * @param options.sql with a connection for each statement at a time, used for nothing else.
 */
export function createQuoteWriter(options: {
  readonly sql: Sql;
  readonly deadlineMs: number;
}): SharedCommit<QuoteRow> {
  const { sql, deadlineMs } = options;
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

/** SQLSTATE classes 22 (data exception) and 23 (integrity): the statement stored nothing, and a row is to blame. */
function isDataFault(error: unknown): boolean {
  return /^2[23]/.test(String((error as { code?: unknown }).code));
}
