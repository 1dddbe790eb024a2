import type { Tenant } from '../../domain/tenant';
import { columns, hint, oneRow, rowsOf, runPrepared, type DbOrTransaction } from '../postgres/connect';
import { SOMETHING_IS_DUE } from './notification';

export interface DeliveryPause extends Tenant {
  readonly pausedAt: Date;
  readonly pausedBy: string;
}

const OF_TENANT = `partner_id = $1 and environment = $2 and resumed_at is null`;
// open.sql takes the same lock shared: an attempt that is being opened has its row before the pause begins.
const LOCK = `select pg_advisory_xact_lock(hashtext('delivery_pauses'), hashtext($1::text || '/' || $2::text))`;
const PAUSE = `
  insert into delivery_pauses (partner_id, environment, paused_by) values ($1, $2, $3) on conflict do nothing returning 1`;
const RESUME = `update delivery_pauses set resumed_at = service_now(), resumed_by = $3 where ${OF_TENANT} returning 1`;

/** Pauses deliveries to a partner: from the commit on no attempt begins. @returns false when they were paused already. */
export async function pauseDeliveries(tx: DbOrTransaction, of: Tenant, actor: string): Promise<boolean> {
  await runPrepared(tx, LOCK, [of.partnerId, of.environment]);
  return (await runPrepared(tx, PAUSE, [of.partnerId, of.environment, actor])).length > 0;
}

/** Ends such a pause: dispatchers claim what is due. @returns false when there was none. */
export async function resumeDeliveries(tx: DbOrTransaction, of: Tenant, actor: string): Promise<boolean> {
  const resumed = await runPrepared(tx, RESUME, [of.partnerId, of.environment, actor]);
  if (resumed.length > 0) hint(tx, SOMETHING_IS_DUE);
  return resumed.length > 0;
}

const PAUSED = `
  select ${columns('p', 'partner_id, environment, paused_at, paused_by')} from delivery_pauses p
  where p.resumed_at is null and ($1::text is null or p.partner_id = $1) order by 1, 2`;

/** The pauses that last, of one partner or of all. */
export const listPauses = (reader: DbOrTransaction, partnerId: string | null = null) =>
  rowsOf<DeliveryPause>(reader, PAUSED, [partnerId]);

export interface UnderWayCounts {
  readonly waiting: number;
  /** Of those, paused one by one (`ops notifications pause`). */
  readonly paused: number;
  readonly sending: number;
}

const COUNTS = `
  select count(*) filter (where not sending)::int as waiting, count(*) filter (where sending)::int as sending,
    count(*) filter (where not sending and paused_at is not null)::int as paused
  from (
    select d.paused_at, exists (
        select from delivery_attempts a
        where a.notification_id = d.notification_id and a.generation = d.generation and a.finished_at is null
          and d.state = 'started') as sending
    from deliveries d where d.partner_id = $1 and ($2::text is null or d.environment = $2) and d.state <> 'held') q`;

/** Reads the rows of the partner's deliveries. @param of.environment null: both. */
export const countUnderWay = (
  reader: DbOrTransaction,
  of: { readonly partnerId: string; readonly environment: Tenant['environment'] | null },
) => oneRow<UnderWayCounts>(reader, COUNTS, [of.partnerId, of.environment]);
