import type { Sql } from './connect';

/** Months of quote partitions that stand ready beyond the current one. A month missed goes to the default partition. */
const MONTHS_AHEAD = 12;
const DAY_MS = 24 * 60 * 60 * 1000;

/** Creates the monthly partitions of quotes that are missing; returns how many it made. */
export async function ensureQuotePartitions(sql: Sql): Promise<number> {
  const rows =
    await sql`select ensure_month_partitions('quotes', 'quote_id', 'qte_', ${MONTHS_AHEAD}) as made`;
  return Number(rows[0]?.['made'] ?? 0);
}

/** Does so once a day, as long as the process lives. Harmless from many processes: they take turns in the database. */
export function keepPartitionsAhead(sql: Sql, onError: (error: unknown) => void): { stop(): void } {
  const timer = setInterval(() => {
    ensureQuotePartitions(sql).catch(onError);
  }, DAY_MS);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}
