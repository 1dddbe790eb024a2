import { ulid } from 'ulid';
import { TEST_EVENT_TYPE } from '../../domain/notification-states';
import type { Tenant } from '../../domain/tenant';
import { pauseUntil } from '../../timing/pause-until';
import { appendChange } from '../audit/change-log';
import { activeEndpointExists, hasActiveEndpoint } from '../endpoints/endpoints';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { hint } from '../postgres/hints';
import { msText, runPrepared, type Reader } from '../postgres/prepared';
import { Refused } from '../refused';
import { ENDED_STATUS_SQL } from '../schema';
import { recoveryIsWanted } from './notification';
import { resendChange, resendNotification } from './resend';

/** 36,000 an hour, and far from what one worker delivers beside its live traffic. */
export const RECOVERED_PER_SECOND = 10;
/** Bulk recoveries are claimed after everything that is live. */
const BULK_PRIORITY = 1;
/** A worker writes to its recovery ten times a second; one that has not for so long is gone. */
const LEASE_SECONDS = 30;
/** People read along; a line a second is enough. */
const PROGRESS_EVERY_MS = 1_000;

/** What a recovery is about. Moments in ISO 8601; `until` is exclusive. */
export interface RecoverySpan {
  readonly partnerId: string;
  /** One environment only; null: both. */
  readonly environment: Tenant['environment'] | null;
  readonly since: string;
  readonly until: string;
}

/** A bulk recovery: everything that a partner did not get in a span, sent again (db/schema/recoveries.ts). */
export interface Recovery extends RecoverySpan {
  readonly recoveryId: string;
  readonly keyId: string | null;
  readonly state: 'running' | 'interrupted' | 'done';
  readonly perSecond: number;
  readonly found: number;
  readonly sent: number;
  readonly skipped: number;
  readonly runner: string;
  /** The last one dealt with. */
  readonly last: RecoveryItem;
  readonly createdMs: number;
  readonly endedMs: number | null;
}

/** One that is to be sent, at its position in the order of work. */
interface RecoveryItem {
  readonly notificationId: string;
  /** Empty for one that tells of no application. */
  readonly application: string;
  readonly sequence: number;
}

const iso = (moment: string) => `to_char(${moment} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
const RECOVERY = `
  r.recovery_id as "recoveryId", r.partner_id as "partnerId", r.environment, r.key_id as "keyId", ${iso('r.since')} as since,
  ${iso('r.until')} as until, r.state, r.per_second as "perSecond", r.found, r.sent, r.skipped, r.runner,
  json_build_object('notificationId', r.last_notification, 'application', r.last_application, 'sequence', r.last_sequence) as last,
  ${msText('r.created_at')} as "createdMs", ${msText('r.ended_at')} as "endedMs"`;

/** Who does it, and in whose name: a process that was taken over from is told so. */
interface RecoveryRunner {
  readonly recoveryId: string;
  readonly runner: string;
  readonly actor: string;
}

/** Another process has resumed this recovery: this one has no say any more. */
export class TakenOver extends Error {
  override readonly name = 'TakenOver';
}

/** Ids sort by time, so that the span bounds what is read. Parameters: partner, environment, since, until. */
const IN_SPAN = `n.partner_id = $1 and ($2::text is null or n.environment = $2)
  and n.notification_id >= 'ntf_' || ulid_floor($3::text::timestamptz)
  and n.notification_id < 'ntf_' || ulid_floor($4::text::timestamptz) and n.delivered_at is null`;
const spanOf = ({ partnerId, environment, since, until }: RecoverySpan) => [
  partnerId,
  environment,
  since,
  until,
];

/** What a recovery may send: by the index of what has ended, so that what is delivered is not read, and by that of what is held. */
const recoverable = (columns: string) => `
  select ${columns} from notifications n
  where ${IN_SPAN} and n.environment in ('sandbox', 'live') and n.end_state is not null
    and (${ENDED_STATUS_SQL}) in ('failed', 'expired') and n.event_type <> '${TEST_EVENT_TYPE}' and n.body <> ''
  union all
  select ${columns} from deliveries d join notifications n using (notification_id)
  where ${IN_SPAN} and d.state = 'held' and d.partner_id = $1 and n.body <> ''`;

/** Notifications of one kind that were never delivered. */
export interface UndeliveredCount {
  readonly environment: Tenant['environment'];
  readonly eventType: string;
  readonly state: string;
  readonly count: number;
  /** What a recovery would do with them, and why it leaves them. */
  readonly plan: 'send' | 'test' | 'under_way' | 'cancelled' | 'no_endpoint' | 'body_removed';
}

// Tests have a strict limit, and a test of yesterday tells nobody anything: they are sent again one by one.
const COUNT_UNDELIVERED = `
  select n.environment, n.event_type as "eventType", n.state,
    case when n.event_type = '${TEST_EVENT_TYPE}' then 'test'
      when n.state in ('queued', 'started') then 'under_way'
      when n.state = 'cancelled' then 'cancelled'
      when n.body = '' then 'body_removed'
      when not ${hasActiveEndpoint('n')} then 'no_endpoint'
      else 'send' end as plan, count(*)::int as count
  from notifications_now n where ${IN_SPAN} group by 1, 2, 3, 4 order by 1, 2, 3, 4`;

/** Counts what was never delivered in a span, by what a recovery would do with it. Changes nothing. */
export async function countUndelivered(reader: Reader, span: RecoverySpan): Promise<UndeliveredCount[]> {
  return runPrepared<UndeliveredCount>(reader, COUNT_UNDELIVERED, spanOf(span));
}

const LIST = `
  select "notificationId", application, sequence from (
    ${recoverable(`n.notification_id as "notificationId", coalesce(n.application_id, '') collate "C" as application,
      coalesce(n.sequence, 0) as sequence, n.partner_id, n.environment`)}) q
  where (application, sequence, "notificationId") > ($5, $6::int, $7) and ${hasActiveEndpoint('q')}
  order by application, sequence, "notificationId"`;

/**
 * What a recovery is to send, in its order of work: application by application, and each one's events by their
 * sequence, so that none overtakes an earlier one.
 */
export async function listRecoverable(
  reader: Reader,
  recovery: RecoverySpan & Pick<Recovery, 'last'>,
): Promise<RecoveryItem[]> {
  const { application, sequence, notificationId } = recovery.last;
  const parameters = [...spanOf(recovery), application, sequence, notificationId];
  return runPrepared<RecoveryItem>(reader, LIST, parameters);
}

const INSERT = `
  insert into recoveries as r (recovery_id, partner_id, environment, since, until, key_id, per_second, found, runner)
  values ($1, $2, $3, $4::text::timestamptz, $5::text::timestamptz, $6, $7::int, $8::int, $9)
  on conflict (partner_id, environment) where state = 'running' and key_id is not null do nothing
  returning ${RECOVERY}`;

/** Writes a new recovery down; it has sent nothing yet. @returns null when one of the partner's own is under way. */
async function insertRecovery(
  tx: DbOrTransaction,
  wanted: RecoverySpan &
    Pick<Recovery, 'keyId' | 'perSecond' | 'found' | 'runner'> & { readonly actor: string },
): Promise<Recovery | null> {
  const { actor, partnerId, environment, since, until, keyId, perSecond, found, runner } = wanted;
  const recoveryId = `rcv_${ulid()}`;
  const values = [recoveryId, partnerId, environment, since, until, keyId, perSecond, found, runner];
  const [row] = await runPrepared<Recovery>(tx, INSERT, values);
  if (row === undefined) return null;
  const details = { partner_id: partnerId, environment, since, until, found };
  await appendChange(tx, { actor, action: 'recoveries.begin', subject: recoveryId, details });
  return row;
}

/** An operator begins a recovery, and carries it out. */
export async function beginRecovery(
  db: Db,
  wanted: RecoverySpan & { readonly perSecond: number; readonly found: number; readonly actor: string },
): Promise<Recovery> {
  const row = await db.transaction((tx) => insertRecovery(tx, { ...wanted, keyId: null, runner: ulid() }));
  if (row === null) throw new Error('a recovery was not stored');
  return row;
}

/** A recovery that a partner asks for. `until` is exclusive. */
export interface WantedRecovery {
  readonly owner: Tenant;
  readonly keyId: string;
  readonly since: Date;
  readonly until: Date;
  /** How far back `since` may lie. */
  readonly longestDays: number;
  readonly dryRun: boolean;
}

const NOW = `select ${msText('service_now()')} as "nowMs",
  exists (select 1 from partners where partner_id = $1 and recovery = 'enabled') as enabled`;

/**
 * Writes down a recovery for a worker to carry out, or counts what it would send. That a partner has one at a time in each
 * environment is decided by an index, whatever is asked at once.
 * @returns `recoveryId`: null for a dry run. @throws Refused
 */
export async function recoverForPartner(
  db: Db,
  { owner, keyId, longestDays, dryRun, ...asked }: WantedRecovery,
): Promise<{ readonly recoveryId: string | null; readonly matched: number }> {
  return db.transaction(async (tx) => {
    const [now] = await runPrepared<{ nowMs: number; enabled: boolean }>(tx, NOW, [owner.partnerId]);
    if (now?.enabled !== true)
      throw new Refused('conflict', 'Recoveries are switched off for this partner.', 'disabled');
    // By the database's clock; its end is never in the future, so that it stands still while it is worked off.
    const nowMs = Math.floor(now.nowMs);
    const since = asked.since.toISOString();
    const until = new Date(Math.min(asked.until.getTime(), nowMs)).toISOString();
    if (nowMs - asked.since.getTime() > longestDays * 86_400_000)
      throw new Refused('invalid', 'The span begins too long ago.', 'too_long_ago');
    if (since >= until) throw new Refused('invalid', 'The span is empty.', 'empty_span');
    if (!dryRun && !(await activeEndpointExists(tx, owner)))
      throw new Refused('conflict', 'There is no active endpoint.', 'no_endpoint');
    const span = { ...owner, since, until };
    const [row] = await runPrepared<{ matched: number }>(tx, COUNT_RECOVERABLE, spanOf(span));
    const matched = row?.matched ?? 0;
    if (dryRun) return { recoveryId: null, matched };
    const perSecond = RECOVERED_PER_SECOND;
    const begun = await insertRecovery(tx, {
      ...span,
      keyId,
      perSecond,
      found: matched,
      runner: '',
      actor: keyId,
    });
    if (begun === null) {
      const other = (await recoveryUnderWay(tx, owner)) ?? undefined;
      throw new Refused('conflict', 'A recovery is under way.', 'recovery_under_way', other);
    }
    hint(tx, recoveryIsWanted(begun.recoveryId));
    return { recoveryId: begun.recoveryId, matched };
  });
}

const COUNT_RECOVERABLE = `select count(*)::int as matched from (${recoverable('1')}) q`;

/**
 * Takes up one that was interrupted, or whose process died, from where it stands.
 * @throws Refused when there is none, or it is done.
 */
export async function resumeRecovery(
  db: Db,
  recoveryId: string,
  { actor, perSecond }: { actor: string; perSecond: number | undefined },
): Promise<Recovery> {
  return db.transaction(async (tx) => {
    const was = await lockRecovery(tx, recoveryId);
    if (was === null) throw new Refused('not_found', `Recovery ${recoveryId} does not exist.`);
    const other = was.keyId === null || was.state === 'running' ? null : await recoveryUnderWay(tx, was);
    if (other !== null) throw new Refused('conflict', `Recovery ${other} of this partner is under way.`);
    if (was.state === 'done') throw new Refused('conflict', `Recovery ${recoveryId} is done.`);
    const change = `state = 'running', runner = $2, per_second = coalesce($3::int, per_second)`;
    const row = await updateRecovery(tx, change, [recoveryId, ulid(), perSecond ?? null]);
    const details = { partner_id: was.partnerId, sent: was.sent, skipped: was.skipped };
    await appendChange(tx, { actor, action: 'recoveries.resume', subject: recoveryId, details });
    return row;
  });
}

const CLAIM = `
  update recoveries r set runner = $1, updated_at = service_now()
  where r.recovery_id = (
    select recovery_id from recoveries
    where state = 'running' and key_id is not null
      and (runner = '' or updated_at < service_now() - make_interval(secs => ${LEASE_SECONDS}))
    order by recovery_id limit 1 for update skip locked)
  returning ${RECOVERY}`;
const STOP_DISABLED = `
  update recoveries r set state = 'interrupted', updated_at = service_now()
  where r.state = 'running' and r.key_id is not null
    and exists (select 1 from partners p where p.partner_id = r.partner_id and p.recovery = 'disabled')`;

/**
 * Takes up a partner's recovery that no worker carries out, the oldest first; null when there is none. What belongs to a partner
 * whose recoveries have been switched off meanwhile is stopped instead.
 */
export async function claimRecovery(db: Db): Promise<Recovery | null> {
  return db.transaction(async (tx) => {
    await runPrepared(tx, STOP_DISABLED);
    const [row] = await runPrepared<Recovery>(tx, CLAIM, [ulid()]);
    return row ?? null;
  });
}

/** Gives a recovery back, for the next worker to take it up at once. */
export async function giveBackRecovery(
  reader: Reader,
  { recoveryId, runner }: Pick<Recovery, 'recoveryId' | 'runner'>,
): Promise<void> {
  const text = `update recoveries set runner = '' where recovery_id = $1 and runner = $2`;
  await runPrepared(reader, text, [recoveryId, runner]);
}

interface RecoveryRun {
  readonly db: Db;
  readonly actor: string;
  readonly interrupted: AbortSignal;
  readonly onProgress: (recovery: Pick<Recovery, 'found' | 'sent' | 'skipped'>) => void;
}

/**
 * Works off what a recovery still has to send, one by one, at its rate. What it has dealt with is written down with each,
 * so it may die at any moment. The caller writes down how it ended.
 * @returns why it stopped before its end, a Refused when there is no active endpoint any more; null at its end.
 * @throws TakenOver when another process has resumed it.
 */
export async function runRecovery(
  recovery: Recovery,
  { db, actor, interrupted, onProgress }: RecoveryRun,
): Promise<'interrupted' | Refused | null> {
  const { recoveryId, runner, found, perSecond } = recovery;
  const items = await listRecoverable(db, recovery);
  let { sent, skipped } = recovery;
  const startedAt = performance.now();
  let toldAt = startedAt;
  for (const [at, item] of items.entries()) {
    await pauseUntil(startedAt + (at / perSecond) * 1_000, interrupted);
    if (interrupted.aborted) return 'interrupted';
    const outcome = await recoverOne(db, { recoveryId, runner, actor }, item).catch((error: unknown) => {
      if (error instanceof Refused && error.why === 'no_endpoint') return error;
      throw error;
    });
    if (outcome instanceof Refused) return outcome;
    if (outcome === 'sent') sent += 1;
    else skipped += 1;
    if (performance.now() - toldAt < PROGRESS_EVERY_MS) continue;
    toldAt = performance.now();
    onProgress({ found, sent, skipped });
  }
  return null;
}

/**
 * Sends one notification again for a recovery. That it was sent, and that the recovery has dealt with it, commit together:
 * whatever dies, it is sent once. One that has been delivered, is under way or is gone by now is passed over.
 * @throws TakenOver; Refused when its endpoint is not active any more, and nothing has changed then.
 */
export async function recoverOne(
  db: Db,
  { recoveryId, runner, actor }: RecoveryRunner,
  { notificationId, application, sequence }: RecoveryItem,
): Promise<'sent' | 'skipped'> {
  return db.transaction(async (tx) => {
    await lockMine(tx, { recoveryId, runner });
    const options = { undeliveredOnly: true, priority: BULK_PRIORITY, recoveryId } as const;
    const done = await resendNotification(tx, notificationId, options).catch((error: unknown) => {
      if (error instanceof Refused && error.why !== 'no_endpoint') return null;
      throw error;
    });
    const outcome = done === null ? 'skipped' : 'sent';
    const change = `${outcome} = ${outcome} + 1, last_application = $2, last_sequence = $3::int, last_notification = $4`;
    await updateRecovery(tx, change, [recoveryId, application, sequence, notificationId]);
    if (done !== null) {
      const change = resendChange(done, actor);
      await appendChange(tx, { ...change, details: { ...change.details, recovery_id: recoveryId } });
    }
    return outcome;
  });
}

/** Writes down that it is done, or that it was interrupted and may be resumed. @throws TakenOver */
export async function endRecovery(
  db: Db,
  { recoveryId, runner, actor }: RecoveryRunner,
  state: 'interrupted' | 'done',
): Promise<Recovery> {
  return db.transaction(async (tx) => {
    await lockMine(tx, { recoveryId, runner });
    const change = `state = $2, ended_at = case when $2 = 'done' then service_now() else ended_at end`;
    const row = await updateRecovery(tx, change, [recoveryId, state]);
    const details = { partner_id: row.partnerId, sent: row.sent, skipped: row.skipped };
    const action = state === 'done' ? 'recoveries.finish' : 'recoveries.interrupt';
    await appendChange(tx, { actor, action, subject: recoveryId, details });
    return row;
  });
}

/** Recoveries, newest first. */
export async function listRecoveries(
  reader: Reader,
  { partnerId, limit }: { partnerId?: string | undefined; limit: number },
): Promise<Recovery[]> {
  const text = `
    select ${RECOVERY} from recoveries r where $1::text is null or r.partner_id = $1 order by r.recovery_id desc limit $2::int`;
  return runPrepared<Recovery>(reader, text, [partnerId ?? null, limit]);
}

/** @param change of constant text; its first parameter is the recovery's id. */
async function updateRecovery(
  tx: DbOrTransaction,
  change: string,
  parameters: readonly (string | number | null)[],
): Promise<Recovery> {
  const text = `update recoveries r set ${change}, updated_at = service_now() where recovery_id = $1 returning ${RECOVERY}`;
  const [row] = await runPrepared<Recovery>(tx, text, parameters);
  if (row === undefined) throw new Error('a locked recovery is gone');
  return row;
}

async function lockRecovery(tx: DbOrTransaction, recoveryId: string): Promise<Recovery | null> {
  const text = `select ${RECOVERY} from recoveries r where r.recovery_id = $1 for update`;
  const [row] = await runPrepared<Recovery>(tx, text, [recoveryId]);
  return row ?? null;
}

async function lockMine(
  tx: DbOrTransaction,
  { recoveryId, runner }: Pick<RecoveryRunner, 'recoveryId' | 'runner'>,
): Promise<void> {
  const row = await lockRecovery(tx, recoveryId);
  if (row?.runner === runner && row.state === 'running') return;
  throw new TakenOver(`Another process has resumed recovery ${recoveryId}: this one has stopped.`);
}

/** The recovery of its own that a partner has under way; at most one in each environment. */
async function recoveryUnderWay(
  tx: DbOrTransaction,
  { partnerId, environment }: Pick<Recovery, 'partnerId' | 'environment'>,
): Promise<string | null> {
  const text = `select recovery_id as id from recoveries
    where partner_id = $1 and environment = $2 and state = 'running' and key_id is not null`;
  const [row] = await runPrepared<{ id: string }>(tx, text, [partnerId, environment]);
  return row?.id ?? null;
}

/** Where a recovery stands, as its partner sees it. Moments in Unix milliseconds. */
export interface RecoveryProgress {
  readonly recoveryId: string;
  readonly state: Recovery['state'];
  readonly matched: number;
  readonly resent: number;
  readonly delivered: number;
  /** Sent again, and neither delivered nor ended yet. */
  readonly underWay: number;
  readonly createdMs: number;
  /** When it was stopped, or the last of what it has sent ended. */
  readonly lastMs: number;
}

const PROGRESS = `
  select r.recovery_id as "recoveryId", r.state, r.found as matched, r.sent as resent, n.delivered, n."underWay",
    ${msText('r.created_at')} as "createdMs",
    ${msText('greatest(coalesce(r.ended_at, r.updated_at), n.ended_at)')} as "lastMs"
  from recoveries r cross join lateral (
    select count(*) filter (where delivered_at is not null)::int as delivered, max(ended_at) as ended_at,
      count(*) filter (where delivered_at is null and end_state is null)::int as "underWay"
    from notifications where recovery_id = r.recovery_id) n
  where r.recovery_id = $1 and r.partner_id = $2 and r.environment = $3`;

/** Reads how far a recovery of this partner and environment has come, an operator's too; null for all others. */
export async function recoveryProgress(
  reader: Reader,
  recoveryId: string,
  { partnerId, environment }: Tenant,
): Promise<RecoveryProgress | null> {
  const [row] = await runPrepared<RecoveryProgress>(reader, PROGRESS, [recoveryId, partnerId, environment]);
  return row ?? null;
}
