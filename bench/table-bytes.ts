import type { Sql } from '../db/postgres/connect';

/** Bytes of each table of ours with its indexes, those of its months together. */
export async function tableBytes(sql: Sql): Promise<Map<string, number>> {
  // A table without partitions has no tree.
  const tables = await sql<{ name: string; bytes: number }[]>`
    select c.relname as name, (select coalesce(sum(pg_total_relation_size(relid)), pg_total_relation_size(c.oid))
      from pg_partition_tree(c.oid))::float8 as bytes
    from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`;
  return new Map(tables.map(({ name, bytes }) => [name, bytes]));
}
