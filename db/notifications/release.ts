import { sql } from 'drizzle-orm';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { hint } from '../postgres/hints';
import { hasActiveEndpoint, queuesWith, type EndpointQueue } from './hold';
import { SOMETHING_IS_DUE } from './channels';
import { updateSql } from './update';

/** Queues with held notifications and an active endpoint. */
export async function queuesToRelease(db: DbOrTransaction): Promise<EndpointQueue[]> {
  const rows = await db.execute(sql`${queuesWith('held')}
    select l.partner_id as "partnerId", l.environment from queues l where ${hasActiveEndpoint('l')}`);
  return [...rows] as unknown as EndpointQueue[];
}

/**
 * Makes the oldest held notifications of a queue pending again, each under its next generation, due in their sequence.
 * The endpoint's row stays locked meanwhile: keepers take turns, and whoever disables or replaces it comes before or after
 * a batch, so that each batch has an endpoint to go to.
 * @returns how many; fewer than `limit` when there are no more, or the endpoint is not active any more.
 */
export async function releaseHeld(
  db: Db,
  { partnerId, environment }: EndpointQueue,
  { limit }: { limit: number },
): Promise<number> {
  return db.transaction(async (tx) => {
    const active = await tx.execute(sql`
      select 1 from webhook_endpoints
      where partner_id = ${partnerId} and environment = ${environment} and state = 'active' for no key update`);
    if (active.length === 0) return 0;
    const rows = await tx.execute(sql`
      with oldest as (
        select notification_id from notifications
        where state = 'held' and partner_id = ${partnerId} and environment = ${environment}
        order by notification_id limit ${limit} for update skip locked),
      placed as (select notification_id, row_number() over (order by notification_id) as place from oldest),
      now as materialized (select service_now() as at)
      ${updateSql('release', { due_at: sql`now.at + make_interval(secs => (placed.place * 0.000001)::float8)` })}
      from placed, now where t.notification_id = placed.notification_id
      returning 1`);
    if (rows.length > 0) hint(tx, SOMETHING_IS_DUE);
    return rows.length;
  });
}
