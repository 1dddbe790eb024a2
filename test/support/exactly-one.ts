import type { Database } from '../../db/postgres/connect';

/** A notification that has both an end and a row in `deliveries`, or neither; a row that belongs to no notification, or to another's. */
export interface Contradiction {
  readonly id: string;
  readonly what: 'both' | 'neither' | 'no notification' | 'another tenant or application';
}

/** What contradicts itself in a database: empty as long as every notification has exactly one of an end and a row. */
export async function contradictions({ sql }: Pick<Database, 'sql'>): Promise<Contradiction[]> {
  return [
    ...(await sql<Contradiction[]>`
      select notification_id as id, what from (
        select notification_id,
          case when n.event_id is null then 'no notification'
            when n.end_state is null and d.state is null then 'neither'
            when n.end_state is not null and d.state is not null then 'both'
            when (n.partner_id, n.environment, n.application_id, n.sequence) is distinct from
              (d.partner_id, d.environment, d.application_id, d.sequence) and d.state is not null
            then 'another tenant or application' end as what
        from notifications n full join deliveries d using (notification_id)) c
      where what is not null order by 1`),
  ];
}

/** @throws when there are any. */
export async function expectExactlyOne(database: Pick<Database, 'sql'>): Promise<void> {
  const found = await contradictions(database);
  if (found.length === 0) return;
  const shown = found.slice(0, 5).map(({ id, what }) => `${id}: ${what}`);
  throw new Error(
    `${found.length} notifications do not have exactly one of an end and a row in deliveries: ${shown.join(', ')}`,
  );
}
