import type { Sql } from './connect';

/** Months of partitions that stand ready beyond the current one. A month missed goes to the default partition. */
const MONTHS_AHEAD = 12;
const DAY_MS = 24 * 60 * 60 * 1000;

/** Every table that is partitioned by month: its partition column, and the prefix of the ULIDs in it. */
const MONTHLY_TABLES = [
  { table: 'quotes', column: 'quote_id', prefix: 'qte_' },
  { table: 'notifications', column: 'notification_id', prefix: 'ntf_' },
  { table: 'delivery_attempts', column: 'notification_id', prefix: 'ntf_' },
] as const;

/** Creates the monthly partitions that are missing; returns how many it made. */
async function ensurePartitions(sql: Sql): Promise<number> {
  let made = 0;
  for (const { table, column, prefix } of MONTHLY_TABLES) {
    const rows =
      await sql`select ensure_month_partitions(${table}, ${column}, ${prefix}, ${MONTHS_AHEAD}) as made`;
    made += Number(rows[0]?.['made'] ?? 0);
  }
  return made;
}

/** Does so once a day, as long as the process lives. Harmless from many processes: they take turns in the database. */
export function keepPartitionsAhead(sql: Sql, onError: (error: unknown) => void): { stop(): void } {
  const timer = setInterval(() => {
    ensurePartitions(sql).catch(onError);
  }, DAY_MS);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}
