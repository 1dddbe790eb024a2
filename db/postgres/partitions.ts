import type { Sql } from './connect';

const DAY_MS = 24 * 60 * 60 * 1000;

/** Creates the monthly partitions that are missing, of this month and the next twelve. A month missed goes to the default partition. */
export async function ensurePartitions(sql: Sql): Promise<void> {
  await sql`select keep_month_partitions()`;
}

/** Does so once a day, as long as the process lives. Harmless from many processes: they take turns in the database. */
export function keepPartitionsAhead(sql: Sql, onError: (error: unknown) => void): { stop(): void } {
  const timer = setInterval(() => {
    ensurePartitions(sql).catch(onError);
  }, DAY_MS);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}
