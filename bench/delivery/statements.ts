import type postgres from 'postgres';
import type { Sql } from '../../db/postgres/connect';

/** Has pg_stat_statements count from nought, or not at all: counting costs time, so it is off while time is measured. */
export async function trackStatements(sql: postgres.Sql | Sql, what: 'top' | 'none'): Promise<void> {
  await sql.unsafe(`alter system set pg_stat_statements.track = '${what}'`);
  await sql`select pg_reload_conf(), pg_stat_statements_reset()`;
  // The sessions hear of it at their next statement.
  await new Promise((resolve) => setTimeout(resolve, 200));
}

/** Statements of all databases since then, BEGIN and COMMIT too, but for those marked as the bench's own. */
export async function countStatements(sql: postgres.Sql | Sql): Promise<number> {
  const [row] = await sql<{ calls: number }[]>`
    select sum(calls)::float8 as calls from pg_stat_statements where query not like '%/* bench */%'`;
  return row?.calls ?? Number.NaN;
}

/** The most frequent of them, for whoever wants to know where they come from. */
export async function listStatements(sql: postgres.Sql | Sql, deliveries: number): Promise<string[]> {
  const rows = await sql<{ calls: number; ms: number; query: string }[]>`
    select calls::float8, total_exec_time as ms, query from pg_stat_statements
    where calls >= ${deliveries / 20} and query not like '%/* bench */%' order by calls desc limit 40`;
  return rows.map(({ calls, ms, query }) => {
    const text = query.replaceAll(/\s+/g, ' ').slice(0, 140);
    return `${(calls / deliveries).toFixed(2)} × ${(ms / calls).toFixed(3)} ms: ${text}`;
  });
}
