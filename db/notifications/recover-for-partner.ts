import { TEST_EVENT_TYPE } from '../../domain/test-event-type';
import { eq, sql } from 'drizzle-orm';
import { ulid } from 'ulid';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { hint } from '../postgres/hints';
import { activeEndpointExists } from '../endpoints/endpoints';
import { appendChange } from '../audit/change-log';
import { partners } from '../schema';
import { RECOVERABLE } from './undelivered';
import { recoveryIsWanted } from './channels';
import type { EndpointQueue } from './hold';
import { recoveryUnderWay } from './recoveries';

/** 36,000 an hour, and far from what one worker delivers beside its live traffic. */
export const RECOVERED_PER_SECOND = 10;

/** A recovery that a partner asks for. `until` is exclusive. */
export interface WantedRecovery {
  readonly owner: EndpointQueue;
  readonly keyId: string;
  readonly since: Date;
  readonly until: Date;
  /** How far back `since` may lie. */
  readonly longestDays: number;
  readonly dryRun: boolean;
}

export type PartnerRecovery =
  | { readonly kind: 'counted'; readonly matched: number }
  | { readonly kind: 'begun'; readonly recoveryId: string; readonly matched: number }
  /** `recoveryId` is empty when the one that was in the way has just ended. */
  | { readonly kind: 'under_way'; readonly recoveryId: string }
  | { readonly kind: 'disabled' | 'too_long_ago' | 'empty_span' | 'no_endpoint' };

/**
 * Writes down a recovery for a worker to carry out (runtime/worker/worker-recoverer.ts), or counts what it would send. That a partner has
 * one at a time in each environment is an index's to say, whatever is asked at once.
 */
export async function recoverForPartner(db: Db, wanted: WantedRecovery): Promise<PartnerRecovery> {
  const { owner, keyId, longestDays, dryRun } = wanted;
  return db.transaction(async (tx) => {
    const [partner] = await tx
      .select({ recovery: partners.recovery })
      .from(partners)
      .where(eq(partners.partnerId, owner.partnerId));
    if (partner?.recovery !== 'enabled') return { kind: 'disabled' };
    const span = await spanOf(tx, wanted);
    if (span.tooLongAgo) return { kind: 'too_long_ago' };
    if (span.since >= span.until) return { kind: 'empty_span' };
    if (!dryRun && !(await activeEndpointExists(tx, owner))) return { kind: 'no_endpoint' };
    const matched = await countMatched(tx, { ...wanted, ...span });
    if (dryRun) return { kind: 'counted', matched };
    const recoveryId = `rcv_${ulid()}`;
    const inserted = await tx.execute(sql`
      insert into recoveries
        (recovery_id, partner_id, environment, key_id, since, until, per_second, found, runner)
      values (${recoveryId}, ${owner.partnerId}, ${owner.environment}, ${keyId}, ${span.since}::timestamptz,
        ${span.until}::timestamptz, ${RECOVERED_PER_SECOND}, ${matched}, '')
      on conflict (partner_id, environment) where state = 'running' and key_id is not null do nothing
      returning 1`);
    if (inserted.length === 0)
      return { kind: 'under_way', recoveryId: (await recoveryUnderWay(tx, owner)) ?? '' };
    const { partnerId: partner_id, environment } = owner;
    const details = { partner_id, environment, since: span.since, until: span.until, found: matched };
    await appendChange(tx, { actor: keyId, action: 'recoveries.begin', subject: recoveryId, details });
    hint(tx, recoveryIsWanted(recoveryId));
    return { kind: 'begun', recoveryId, matched };
  });

  /** By the database's clock, in ISO 8601; its end is never in the future, so that it stands still while it is worked off. */
  async function spanOf(tx: DbOrTransaction, { since, until }: WantedRecovery) {
    const [row] = await tx.execute<{ nowMs: number }>(
      sql`select (extract(epoch from service_now()) * 1000)::float8 as "nowMs"`,
    );
    const nowMs = Math.floor(row?.nowMs ?? Number.NaN);
    return {
      tooLongAgo: nowMs - since.getTime() > longestDays * 86_400_000,
      since: since.toISOString(),
      until: new Date(Math.min(until.getTime(), nowMs)).toISOString(),
    };
  }
}

/** By the index of partners' statuses: what is delivered is not read. */
async function countMatched(
  tx: DbOrTransaction,
  wanted: Pick<WantedRecovery, 'owner'> & {
    readonly since: string;
    readonly until: string;
  },
): Promise<number> {
  const { owner, since, until } = wanted;
  const [row] = await tx.execute<{ matched: number }>(sql`
    select count(*)::int as matched from notifications
    where environment = ${owner.environment} and partner_id = ${owner.partnerId} and ${RECOVERABLE}
      and notification_id >= 'ntf_' || ulid_floor(${since}::timestamptz)
      and notification_id < 'ntf_' || ulid_floor(${until}::timestamptz)
      and delivered_at is null and event_type <> ${TEST_EVENT_TYPE} and body <> ''`);
  return row?.matched ?? 0;
}
