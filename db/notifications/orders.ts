import type { Tenant } from '../../domain/tenant';
import { runPrepared, type Reader } from '../postgres/connect';
import { fromText, updateText, type NotificationRef } from './notification';

/** Orders of operators to deliveries. Each is a change of the row, which the woken workflow reads. */
export type Order = 'pause' | 'resume' | 'retry_now';

export interface Ordered extends NotificationRef {
  readonly partnerId: string;
}

// Rows are locked in the order of their ids, so that two commands for the same ones take turns.
const text = (order: Order, change: string, condition = 'true') => `
  with wanted as (
    select d.notification_id from deliveries d
    where d.notification_id = any($1::text[]) and ${fromText(order)} and ${condition}
    order by d.notification_id for update),
  ordered as (
    ${change} from wanted where d.notification_id = wanted.notification_id
    returning d.notification_id as "notificationId", d.generation, d.partner_id as "partnerId")
  select * from ordered order by 1`;
const PAUSE = text('pause', updateText('pause', { paused_by: 'coalesce(d.paused_by, $2)' }));
const RESUME = text('resume', updateText('resume', {}), `(d.state = 'started' or d.paused_at is not null)`);
const RETRY_NOW = text('retry_now', updateText('retry_now', {}));

/**
 * Gives an order to deliveries. Their workflows are woken after the commit; a wake that is lost is made good
 * by the reconciler.
 * @param by who gives it; of two who pause, the first is noted
 * @returns those that took it, by id; others have ended, are held, or have no workflow at the moment
 */
export const orderDeliveries = (reader: Reader, order: Order, ids: readonly string[], by: string) =>
  order === 'pause'
    ? runPrepared<Ordered>(reader, PAUSE, [ids, by])
    : runPrepared<Ordered>(reader, order === 'resume' ? RESUME : RETRY_NOW, [ids]);

// What is paused on purpose, or hurried already, gains nothing from another order to retry now.
const TO_ORDER: Readonly<Record<Order, string>> = {
  pause: `state = 'started' and paused_at is null and next_attempt_at is not null`,
  retry_now: `state = 'started' and paused_at is null and next_attempt_at is not null and hurried_at is null`,
  resume: `state <> 'held' and paused_at is not null`,
};

/**
 * Deliveries of a partner to which an order makes a difference, oldest first.
 * @param of.environment null: both
 */
export async function listToOrder(
  reader: Reader,
  of: { readonly partnerId: string; readonly environment: Tenant['environment'] | null },
  order: Order,
): Promise<string[]> {
  const text = `
    select notification_id as id from deliveries
    where partner_id = $1 and ($2::text is null or environment = $2) and ${TO_ORDER[order]} order by 1`;
  const rows = await runPrepared<{ id: string }>(reader, text, [of.partnerId, of.environment]);
  return rows.map(({ id }) => id);
}
