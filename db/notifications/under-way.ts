import type { KeyEnvironment } from '../keys/key';
import type { Notification } from './read';
import { runPrepared, type Reader } from '../postgres/prepared';

/** What an order to many looks for: what is paused, or what waits for its next attempt and is not. */
export type UnderWayKind = 'paused' | 'retrying';

export type UnderWay = Pick<Notification, 'notificationId' | 'generation' | 'partnerId' | 'environment'>;

// By the index of what is started; an application's events in their order.
const UNDER_WAY = `
  select notification_id as "notificationId", generation, partner_id as "partnerId", environment
  from notifications
  where state = 'started' and partner_id = $1 and ($2::text is null or environment = $2)
    and case $3 when 'paused' then paused_at is not null else paused_at is null and next_attempt_at is not null end
  order by notification_id`;

/** Deliveries of a partner that a workflow works on, oldest first. @param environment null: of both. */
export async function listUnderWay(
  db: Reader,
  { partnerId, environment }: { readonly partnerId: string; readonly environment: KeyEnvironment | null },
  kind: UnderWayKind,
): Promise<UnderWay[]> {
  return runPrepared<UnderWay>(db, UNDER_WAY, [partnerId, environment, kind]);
}
