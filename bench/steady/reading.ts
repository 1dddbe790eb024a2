import { readdir, readFile } from 'node:fs/promises';
import type { Sql } from '../../db/postgres/connect';
import { childrenOf } from '../../dev/processes';
import type { Figures } from '../harness/rounds';

/** Tables that grow, and what with; all others keep their size. */
const GROWING: Readonly<Record<string, 'quote' | 'delivery'>> = {
  quotes: 'quote',
  credit_applications: 'delivery',
  notifications: 'delivery',
  delivery_attempts: 'delivery',
};

/** The resident memory of a process, in MB; its open files and sockets. NaN once it has ended. */
export async function readProcess(name: string, pid: number): Promise<Figures> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const files = await readdir(`/proc/${pid}/fd`).catch(() => undefined);
  return {
    [`${name}_mb`]: Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1_024,
    [`${name}_handles`]: files?.length ?? Number.NaN,
  };
}

/** The memory that a Postgres and its sessions do not share, in MB. */
export async function readPostgres(name: string, pid: number): Promise<Figures> {
  const pids = [pid, ...(await childrenOf(pid))];
  const kilobytes = await Promise.all(
    pids.map(async (one) => {
      // A session may have ended meanwhile.
      const memory = await readFile(`/proc/${one}/smaps_rollup`, 'utf8').catch(() => '');
      return Number(/^Pss_Anon:\s+(\d+) kB/m.exec(memory)?.[1] ?? 0);
    }),
  );
  return { [`${name}_mb`]: kilobytes.reduce((sum, kb) => sum + kb, 0) / 1_024 };
}

/** Sessions, and bytes of tables with their indexes: the two kinds that grow, and all others together. */
export async function readDatabase(sql: Sql): Promise<Figures> {
  const [sessions] = await sql<{ count: number }[]>`
    select count(*)::float8 as count from pg_stat_activity where backend_type = 'client backend'`;
  // The months of a table count together. A table without partitions has no tree.
  const tables = await sql<{ name: string; bytes: number }[]>`
    select c.relname as name, (select coalesce(sum(pg_total_relation_size(relid)), pg_total_relation_size(c.oid))
      from pg_partition_tree(c.oid))::float8 as bytes
    from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`;
  const bytes = { quote: 0, delivery: 0, other: 0 };
  for (const table of tables) bytes[GROWING[table.name] ?? 'other'] += table.bytes;
  // It fills and empties with every delivery: autovacuum has to keep up.
  const [churn] = await sql<{ kb: number; dead: number }[]>`
    select pg_total_relation_size(relid)::float8 / 1024 as kb, n_dead_tup::float8 as dead
    from pg_stat_user_tables where relname = 'deliveries'`;
  return {
    deliveries_kb: churn?.kb ?? Number.NaN,
    deliveries_dead_rows: churn?.dead ?? Number.NaN,
    sessions: sessions?.count ?? Number.NaN,
    quote_bytes: bytes.quote,
    delivery_bytes: bytes.delivery,
    other_tables_kb: bytes.other / 1_024,
  };
}
