import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from './connect';

/** What metrics show of the database itself. */
export interface DatabaseFigures {
  /** Whole months after the present one that every table has partitions for; 12, or 11 shortly after a month has begun. */
  readonly monthsAhead: number;
  /** Milliseconds since the write-ahead log was last archived, while its last attempt has failed; else 0, as without an archive. */
  readonly archiveFailingMs: number;
}

export async function databaseFigures(db: DbOrTransaction): Promise<DatabaseFigures> {
  const [row] = await db.execute<{ monthsAhead: number; archiveFailingMs: number }>(sql`
    select (
        select min(ahead)::int from (
          select (
            select count(*) from pg_inherits i join pg_class c on c.oid = i.inhrelid
            where i.inhparent = to_regclass(parent) and c.relname ~ '_[0-9]{4}_[0-9]{2}$'
              and right(c.relname, 7) > to_char(service_now() at time zone 'UTC', 'YYYY_MM')) as ahead
          from unnest(array['quotes', 'notifications', 'delivery_attempts']) parent) months) as "monthsAhead",
      case when last_failed_time > coalesce(last_archived_time, '-infinity')
        then extract(epoch from clock_timestamp() - coalesce(last_archived_time, stats_reset)) * 1000
        else 0 end::float8 as "archiveFailingMs"
    from pg_stat_archiver`);
  if (row === undefined) throw new Error('the figures of the database came back empty');
  return row;
}
