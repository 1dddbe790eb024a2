import { msText, runPrepared, type Reader } from '../postgres/prepared';
import type { EndpointQueue } from './hold';

/** Where a recovery stands, as its partner sees it. Moments in Unix milliseconds. */
export interface RecoveryProgress {
  readonly recoveryId: string;
  readonly state: 'running' | 'interrupted' | 'done';
  readonly matched: number;
  readonly resent: number;
  readonly delivered: number;
  /** Sent again, and neither delivered nor ended yet. */
  readonly underWay: number;
  readonly createdMs: number;
  /** When it was stopped, or the last of what it has sent ended. */
  readonly lastMs: number;
}

const FIND = `
  select r.recovery_id as "recoveryId", r.state, r.found as matched, r.sent as resent, n.delivered, n."underWay",
    ${msText('r.created_at')} as "createdMs",
    ${msText('greatest(coalesce(r.ended_at, r.updated_at), n.ended_at)')} as "lastMs"
  from recoveries r cross join lateral (
    select count(*) filter (where delivered_at is not null)::int as delivered, max(ended_at) as ended_at,
      count(*) filter (where delivered_at is null and state in ('pending', 'started', 'held'))::int as "underWay"
    from notifications where recovery_id = r.recovery_id) n
  where r.recovery_id = $1 and r.partner_id = $2 and r.environment = $3`;

/** Reads how far a recovery of this partner and environment has come, an operator's too; null for all others. */
export async function recoveryProgress(
  reader: Reader,
  recoveryId: string,
  { partnerId, environment }: EndpointQueue,
): Promise<RecoveryProgress | null> {
  const [row] = await runPrepared<RecoveryProgress>(reader, FIND, [recoveryId, partnerId, environment]);
  return row ?? null;
}
