import { ulid } from 'ulid';
import type { Tenant } from '../../domain/tenant';
import { pauseUntil } from '../../timing/timing';
import { appendChange } from '../audit/change-log';
import { activeEndpointExists, noActiveEndpoint } from '../endpoints/endpoints';
import { columns, firstRow, msText, oneRow, runPrepared } from '../postgres/connect';
import { hint } from '../postgres/hints';
import type { Db, DbOrTransaction, Parameter, Reader } from '../postgres/connect';
import { Refused } from '../refused';
import type { recoveries } from '../schema';
import { recoveryIsWanted } from './notification';
import { countRecoverable, countUpTo, LISTED_AT_A_TIME, listRecoverable } from './recoverable';
import { MOST_MATCHED, resolveSpan } from './recoverable';
import type { Matched, RecoveryItem, RecoverySpan } from './recoverable';
import { resendChange, resendNotification } from './resend';

/** 36,000 an hour, a small part of what one worker delivers. */
export const RECOVERED_PER_SECOND = 10;
const BULK_PRIORITY = 1;
/** A worker writes to its recovery ten times a second. One that has not for this long is gone. */
const LEASE_SECONDS = 30;
const PROGRESS_EVERY_MS = 1_000;

type StoredRecovery = Readonly<typeof recoveries.$inferSelect>;
type Stored = 'recoveryId' | 'keyId' | 'state' | 'perSecond' | 'found' | 'sent' | 'skipped' | 'runner';

/** A bulk recovery resends every notification of a span that a partner did not get. */
export interface Recovery extends RecoverySpan, Pick<StoredRecovery, Stored> {
  readonly last: RecoveryItem;
  readonly createdMs: number;
  readonly endedMs: number | null;
}

interface RecoveryRunner extends Pick<Recovery, 'recoveryId' | 'runner'> {
  readonly actor: string;
}

const iso = (moment: string) => `to_char(${moment} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
const RECOVERY = `
  ${columns('r', 'recovery_id, partner_id, environment, key_id, state, per_second, found, sent, skipped, runner')},
  ${iso('r.since')} as since, ${iso('r.until')} as until,
  json_build_object('notificationId', r.last_notification, 'application', r.last_application, 'sequence', r.last_sequence) as last,
  ${msText('r.created_at')} as "createdMs", ${msText('r.ended_at')} as "endedMs"`;

export class TakenOver extends Error {
  override readonly name = 'TakenOver';
}

const LOCK = `select ${RECOVERY} from recoveries r where r.recovery_id = $1 for update`;

async function lockOwn(tx: DbOrTransaction, { recoveryId, runner }: RecoveryRunner): Promise<void> {
  const [row] = await runPrepared<Recovery>(tx, LOCK, [recoveryId]);
  if (row?.runner === runner && row.state === 'running') return;
  throw new TakenOver(`Another process has resumed recovery ${recoveryId}: this one has stopped.`);
}

/** @param change a constant text, whose first parameter is the id of the recovery */
function update(tx: DbOrTransaction, change: string, parameters: readonly Parameter[]): Promise<Recovery> {
  const text = `update recoveries r set ${change}, updated_at = service_now() where recovery_id = $1 returning ${RECOVERY}`;
  return oneRow<Recovery>(tx, text, parameters);
}

const OWN_UNDER_WAY = `
  select recovery_id as id from recoveries
  where partner_id = $1 and environment = $2 and state = 'running' and key_id is not null`;

const ownUnderWay = async (tx: DbOrTransaction, of: Pick<Recovery, 'partnerId' | 'environment'>) =>
  (await firstRow<{ id: string }>(tx, OWN_UNDER_WAY, [of.partnerId, of.environment]))?.id;

const INSERT = `
  insert into recoveries as r (recovery_id, partner_id, environment, since, until, key_id, per_second, found, runner)
  values ($1, $2, $3, $4::text::timestamptz, $5::text::timestamptz, $6, $7::int, $8::int, $9)
  on conflict (partner_id, environment) where state = 'running' and key_id is not null do nothing
  returning ${RECOVERY}`;

type NewRecovery = RecoverySpan & Pick<Recovery, 'perSecond' | 'found'> & { readonly actor: string };

/** @returns null when the partner has a recovery of its own under way */
async function insertRecovery(tx: DbOrTransaction, wanted: NewRecovery & Pick<Recovery, 'keyId' | 'runner'>) {
  const { actor, partnerId, environment, since, until, keyId, perSecond, found, runner } = wanted;
  const recoveryId = `rcv_${ulid()}`;
  const values = [recoveryId, partnerId, environment, since, until, keyId, perSecond, found, runner];
  const [row] = await runPrepared<Recovery>(tx, INSERT, values);
  if (row === undefined) return null;
  const details = { partner_id: partnerId, environment, since, until, found };
  await appendChange(tx, { actor, action: 'recoveries.begin', subject: recoveryId, details });
  return row;
}

export async function beginRecovery(db: Db, wanted: NewRecovery): Promise<Recovery> {
  const row = await db.transaction((tx) => insertRecovery(tx, { ...wanted, keyId: null, runner: ulid() }));
  if (row === null) throw new Error('a recovery was not stored');
  return row;
}

interface WantedSpan {
  readonly owner: Tenant;
  readonly since: Date;
  readonly until: Date;
}

const ENABLED = `select 1 from partners where partner_id = $1 and recovery = 'enabled'`;

async function partnerSpan(reader: Reader, { owner, since, until }: WantedSpan) {
  if ((await runPrepared(reader, ENABLED, [owner.partnerId])).length === 0)
    throw new Refused('conflict', 'Recoveries are switched off for this partner.', 'disabled');
  return { ...owner, ...(await resolveSpan(reader, { at: since }, { at: until })) };
}

/**
 * Counts what a recovery of a partner would send.
 * @throws Refused
 */
export const countForPartner = async (reader: Reader, wanted: WantedSpan): Promise<Matched> =>
  countUpTo(reader, await partnerSpan(reader, wanted));

/**
 * Stores a recovery for a worker, which sends all that there is. An index allows a partner one at a time.
 * @throws Refused
 */
export async function recoverForPartner(db: Db, wanted: WantedSpan & { readonly keyId: string }) {
  const { owner, keyId } = wanted;
  return db.transaction(async (tx) => {
    const span = await partnerSpan(tx, wanted);
    if (!(await activeEndpointExists(tx, owner))) throw noActiveEndpoint(owner);
    const counted = await countUpTo(tx, span);
    const about = { keyId, perSecond: RECOVERED_PER_SECOND, found: counted.matched, actor: keyId };
    const begun = await insertRecovery(tx, { ...span, ...about, runner: '' });
    if (begun === null) {
      const other = await ownUnderWay(tx, owner);
      throw new Refused('conflict', 'A recovery is under way.', 'recovery_under_way', other);
    }
    hint(tx, recoveryIsWanted(begun.recoveryId));
    return { recoveryId: begun.recoveryId, ...counted };
  });
}

/**
 * Resumes a recovery that was interrupted, or whose process died.
 * @throws Refused when there is none, or it is done
 */
export async function resumeRecovery(
  db: Db,
  recoveryId: string,
  { actor, perSecond }: { actor: string; perSecond: number | undefined },
): Promise<Recovery> {
  return db.transaction(async (tx) => {
    const [was] = await runPrepared<Recovery>(tx, LOCK, [recoveryId]);
    if (was === undefined) throw new Refused('not_found', `Recovery ${recoveryId} does not exist.`);
    const other = was.keyId === null || was.state === 'running' ? undefined : await ownUnderWay(tx, was);
    if (other !== undefined) throw new Refused('conflict', `Recovery ${other} of this partner is under way.`);
    if (was.state === 'done') throw new Refused('conflict', `Recovery ${recoveryId} is done.`);
    const change = `state = 'running', runner = $2, per_second = coalesce($3::int, per_second)`;
    const row = await update(tx, change, [recoveryId, ulid(), perSecond ?? null]);
    const details = { partner_id: was.partnerId, sent: was.sent, skipped: was.skipped };
    await appendChange(tx, { actor, action: 'recoveries.resume', subject: recoveryId, details });
    return row;
  });
}

const STOP_DISABLED = `
  update recoveries r set state = 'interrupted', updated_at = service_now()
  where r.state = 'running' and r.key_id is not null
    and exists (select 1 from partners p where p.partner_id = r.partner_id and p.recovery = 'disabled')`;
const CLAIM = `
  update recoveries r set runner = $1, updated_at = service_now()
  where r.recovery_id = (
    select recovery_id from recoveries
    where state = 'running' and key_id is not null
      and (runner = '' or updated_at < service_now() - make_interval(secs => ${LEASE_SECONDS}))
    order by recovery_id limit 1 for update skip locked)
  returning ${RECOVERY}`;

/** Claims the oldest free recovery, and stops those of partners who may have none any more. */
export async function claimRecovery(db: Db): Promise<Recovery | null> {
  return db.transaction(async (tx) => {
    await runPrepared(tx, STOP_DISABLED);
    return firstRow<Recovery>(tx, CLAIM, [ulid()]);
  });
}

const GIVE_BACK = `update recoveries set runner = '' where recovery_id = $1 and runner = $2`;

export async function giveBackRecovery(reader: Reader, of: Pick<Recovery, 'recoveryId' | 'runner'>) {
  await runPrepared(reader, GIVE_BACK, [of.recoveryId, of.runner]);
}

interface RecoveryRun {
  readonly db: Db;
  readonly actor: string;
  readonly interrupted: AbortSignal;
  readonly onProgress: (recovery: Pick<Recovery, 'found' | 'sent' | 'skipped'>) => void;
}

const CORRECT = `update recoveries set found = greatest(found, $3::int) where recovery_id = $1 and runner = $2`;

/** What a partner's call has counted may be a minimum. */
async function foundOf(db: Db, recovery: Recovery): Promise<number> {
  const { recoveryId, runner, keyId, found, last } = recovery;
  if (keyId === null || last.notificationId !== '') return found;
  const counted = await countRecoverable(db, recovery);
  await runPrepared(db, CORRECT, [recoveryId, runner, counted]);
  return Math.max(found, counted);
}

/**
 * Sends what a recovery still has to send, one by one, at its rate. Its position is stored with each,
 * so that it may die at any moment. The caller records how it ended.
 * @returns why it stopped early, a Refused when there is no active endpoint any more; null at its end
 * @throws TakenOver when another process has resumed it
 */
export async function runRecovery(
  recovery: Recovery,
  { db, actor, interrupted, onProgress }: RecoveryRun,
): Promise<'interrupted' | Refused | null> {
  const { recoveryId, runner, perSecond, partnerId, environment } = recovery;
  const found = await foundOf(db, recovery);
  let { sent, skipped, last } = recovery;
  const startedAt = performance.now();
  let shownAt = startedAt;
  let at = 0;
  for (;;) {
    const items = await listRecoverable(db, { ...recovery, last });
    // Without an endpoint there is nothing to list.
    if (at > 0 && items.length === 0 && environment !== null) {
      const owner = { partnerId, environment };
      return (await activeEndpointExists(db, owner)) ? null : noActiveEndpoint(owner);
    }
    for (const item of items) {
      await pauseUntil(startedAt + (at / perSecond) * 1_000, interrupted);
      if (interrupted.aborted) return 'interrupted';
      const outcome = await recoverOne(db, { recoveryId, runner, actor }, item).catch((error: unknown) => {
        if (error instanceof Refused && error.detail === 'no_endpoint') return error;
        throw error;
      });
      if (outcome instanceof Refused) return outcome;
      if (outcome === 'sent') sent += 1;
      else skipped += 1;
      [at, last] = [at + 1, item];
      if (performance.now() - shownAt < PROGRESS_EVERY_MS) continue;
      shownAt = performance.now();
      onProgress({ found, sent, skipped });
    }
    if (items.length < LISTED_AT_A_TIME) return null;
  }
}

/**
 * Resends one notification, and stores the position of the recovery in the same transaction, so that it
 * is sent once even after a crash. One that has been delivered, is under way or is gone by now is
 * skipped.
 * @throws TakenOver; Refused when its endpoint is not active any more, and then nothing has changed
 */
export async function recoverOne(
  db: Db,
  by: RecoveryRunner,
  { notificationId, application, sequence }: RecoveryItem,
): Promise<'sent' | 'skipped'> {
  const { recoveryId, actor } = by;
  return db.transaction(async (tx) => {
    await lockOwn(tx, by);
    const options = { undeliveredOnly: true, priority: BULK_PRIORITY, recoveryId } as const;
    const done = await resendNotification(tx, notificationId, options).catch((error: unknown) => {
      if (error instanceof Refused && error.detail !== 'no_endpoint') return null;
      throw error;
    });
    const outcome = done === null ? 'skipped' : 'sent';
    const change = `${outcome} = ${outcome} + 1, last_application = $2, last_sequence = $3::int, last_notification = $4`;
    await update(tx, change, [recoveryId, application, sequence, notificationId]);
    if (done !== null) {
      const change = resendChange(done, actor);
      await appendChange(tx, { ...change, details: { ...change.details, recovery_id: recoveryId } });
    }
    return outcome;
  });
}

/**
 * Records that a recovery is done, or was interrupted and may be resumed.
 * @throws TakenOver
 */
export async function endRecovery(db: Db, by: RecoveryRunner, state: 'interrupted' | 'done') {
  const { recoveryId, actor } = by;
  return db.transaction(async (tx) => {
    await lockOwn(tx, by);
    const change = `state = $2, ended_at = case when $2 = 'done' then service_now() else ended_at end`;
    const row = await update(tx, change, [recoveryId, state]);
    const details = { partner_id: row.partnerId, sent: row.sent, skipped: row.skipped };
    const action = state === 'done' ? 'recoveries.finish' : 'recoveries.interrupt';
    await appendChange(tx, { actor, action, subject: recoveryId, details });
    return row;
  });
}

const NEWEST = `
  select ${RECOVERY} from recoveries r where $1::text is null or r.partner_id = $1 order by r.recovery_id desc limit $2::int`;

export const listRecoveries = (reader: Reader, of: { partnerId?: string; limit: number }) =>
  runPrepared<Recovery>(reader, NEWEST, [of.partnerId ?? null, of.limit]);

export interface RecoveryProgress {
  readonly recoveryId: string;
  readonly state: Recovery['state'];
  readonly matched: number;
  /** No worker has counted them all yet. */
  readonly isMinimum: boolean;
  readonly resent: number;
  readonly delivered: number;
  readonly underWay: number;
  readonly createdMs: number;
  /** When it was stopped, or when the last notification that it sent has ended. */
  readonly lastMs: number;
}

const PROGRESS = `
  select r.recovery_id as "recoveryId", r.state, r.found as matched,
    r.found = ${MOST_MATCHED} and r.last_notification = '' as "isMinimum", r.sent as resent, n.delivered, n."underWay",
    ${msText('r.created_at')} as "createdMs",
    ${msText('greatest(coalesce(r.ended_at, r.updated_at), n.ended_at)')} as "lastMs"
  from recoveries r cross join lateral (
    select count(*) filter (where delivered_at is not null)::int as delivered, max(ended_at) as ended_at,
      count(*) filter (where delivered_at is null and end_state is null)::int as "underWay"
    from notifications where recovery_id = r.recovery_id) n
  where r.recovery_id = $1 and r.partner_id = $2 and r.environment = $3`;

/** Reads the progress of a recovery of this partner and environment; null for all others. */
export const recoveryProgress = (reader: Reader, recoveryId: string, of: Tenant) =>
  firstRow<RecoveryProgress>(reader, PROGRESS, [recoveryId, of.partnerId, of.environment]);
