import { ORDER_WAIT_SECONDS } from '../../domain/delivery-now';
import { DELIVERY_LADDER_MS, TEST_LADDER_MS } from '../../domain/delivery-outcome';
import type { DeliveryOutcome, Next, Over, Wait } from '../../domain/delivery-outcome';
import type { DeliveryState, EndState, NotificationState } from '../../domain/notification-states';
import type { Tenant } from '../../domain/tenant';
import type { OperatorEvent } from '../audit/operator-events';
import { noteHealth, type EndpointHealth } from '../endpoints/endpoints';
import type { SealedSecret } from '../endpoints/secrets';
import type { SealedKeyPair } from '../endpoints/key-pairs';
import { firstRow, oneRow, runPrepared, type DbOrTransaction, type Reader } from '../postgres/connect';
import { hint } from '../postgres/hints';
import { Refused } from '../refused';
import type { notifications } from '../schema';
import { fromText, lockNotification, SOMETHING_IS_DUE, testHasMoved, updateText } from './notification';
import type { NotificationRef } from './notification';
import { TEST_LIMIT_PER_MONTH } from './quota';

type Stored = Readonly<typeof notifications.$inferSelect>;

export interface AttemptRef {
  readonly notificationId: string;
  readonly attemptNumber: number;
}

/** What an attempt needs, or the reason why there is none to make. */
export type OpenedAttempt =
  | {
      readonly kind: 'open';
      readonly attemptNumber: number;
      readonly notification: Tenant &
        Pick<Stored, 'eventId' | 'eventType' | 'body' | 'applicationId' | 'sequence' | 'merchantReference'> &
        Pick<Stored, 'requestId' | 'traceParent'> & { readonly ageMs: number };
      /** `alone`: the endpoint gets a connection for this attempt alone. */
      readonly endpoint: { readonly endpointId: string; readonly url: string; readonly alone: boolean };
      readonly secrets: readonly Omit<SealedSecret, 'createdAt' | 'expiresAt'>[];
      readonly keyPairs: readonly Pick<SealedKeyPair, 'keyPairId' | 'publicKey' | 'keyId' | 'ciphertext'>[];
    }
  /** Deliveries to the partner are paused. The notification is queued under its next generation. */
  | { readonly kind: 'paused' }
  | Wait
  | Over
  | { readonly kind: 'no_endpoint'; readonly eventType: string; readonly reason: string }
  | { readonly kind: 'other_endpoint' }
  | { readonly kind: 'monthly_limit' }
  /** The row contradicts its notification, so that it can never be sent. */
  | { readonly kind: 'poison' };

const OPEN =
  'select open_attempt_1($1, $2::int, $3, $4::int, $5::text[]::int[], $6::text[]::int[]) as opened';

type Sealed<Row> = readonly (Omit<Row, 'ciphertext'> & { readonly ciphertext: string })[];

const bytesOf = ({ ciphertext }: { readonly ciphertext: string }) => Buffer.from(ciphertext, 'base64');

/** Wait before each attempt, in milliseconds. */
export type Ladders = Readonly<Record<'status' | 'test', readonly number[]>>;

export interface OpenOptions {
  /** The endpoint that it must be for; null: any. */
  readonly onlyEndpoint?: string | null;
  /** One of them is stored with the delivery when it is opened first. */
  readonly ladders?: Ladders;
}

const LADDERS = { status: DELIVERY_LADDER_MS, test: TEST_LADDER_MS };

/** Writes the row of an attempt before it is sent (open.sql). */
export async function openAttempt(
  reader: Reader,
  { notificationId, generation }: NotificationRef,
  { onlyEndpoint = null, ladders = LADDERS }: OpenOptions = {},
): Promise<OpenedAttempt> {
  type Open = Extract<OpenedAttempt, { kind: 'open' }>;
  type Read = Exclude<OpenedAttempt, Open> | (Omit<Open, 'secrets' | 'keyPairs'> & SealedJson);
  interface SealedJson {
    readonly secrets: Sealed<Omit<Open['secrets'][number], 'endpointId'>>;
    readonly keyPairs: Sealed<Open['keyPairs'][number]>;
  }
  const steps = [ladders.status, ladders.test].map((ladder) => ladder.map(String));
  const parameters = [notificationId, generation, onlyEndpoint, TEST_LIMIT_PER_MONTH, ...steps];
  const { opened } = await oneRow<{ opened: Read }>(reader, OPEN, parameters);
  if (opened.kind !== 'open') return opened;
  const { endpointId } = opened.endpoint;
  return {
    ...opened,
    secrets: opened.secrets.map((one) => ({ ...one, endpointId, ciphertext: bytesOf(one) })),
    keyPairs: opened.keyPairs.map((one) => ({ ...one, ciphertext: bytesOf(one) })),
  };
}

/** Whose endpoint the next attempt of a delivery goes to, and how many attempts were made. */
interface DueAttempt extends Tenant {
  readonly attempts: number;
}

const DUE = `
  select d.partner_id as "partnerId", d.environment, d.attempts from deliveries d
  where d.notification_id = $1 and what_follows_2(d, d.notification_id, $2::int, service_now()) is null`;

/** Reads whether an attempt may be made now, without beginning it. @returns null when none may */
export const readDue = (reader: Reader, { notificationId, generation }: NotificationRef) =>
  firstRow<DueAttempt>(reader, DUE, [notificationId, generation]);

const REQUEUE = `
  ${updateText('requeue', { due_at: 'service_now() + make_interval(secs => $3::float8)' })}
  where d.notification_id = $1 and d.generation = $2::int and ${fromText('requeue')} returning 1`;

/**
 * Queues a delivery that found no slot under its next generation, due after this wait. Its ladder goes on
 * at the same step.
 * @returns false when its workflow is not the current one any more
 */
export const requeue = async (
  reader: Reader,
  { notificationId, generation }: NotificationRef,
  waitMs: number,
) => (await runPrepared(reader, REQUEUE, [notificationId, generation, waitMs / 1_000])).length > 0;

const FORGET = `
  with locked as (
    select notification_id from deliveries where notification_id = $1 and attempts = $2::int for update),
  gone as (
    delete from delivery_attempts a using locked
    where a.notification_id = $1 and a.attempt_number = $2::int and a.finished_at is null
    returning a.started_at)
  ${updateText('forget_attempt', {
    attempts: 'd.attempts - 1',
    first_attempt_at: `case when d.first_attempt_at < gone.started_at or exists (
      select from delivery_attempts a where a.notification_id = $1 and a.attempt_number < $2::int and a.generation = d.generation)
      then d.first_attempt_at end`,
  })}
  from gone where d.notification_id = $1 and ${fromText('forget_attempt')}`;

/** Deletes the row of an attempt that could not be signed, so was not sent. Its number is free again. */
export const forgetAttempt = (reader: Reader, { notificationId, attemptNumber }: AttemptRef) =>
  runPrepared(reader, FORGET, [notificationId, attemptNumber]);

/** No attempt of ours had this result: it contradicts the attempt's row, or there is none. */
export class ForeignResult extends Error {
  override readonly name = 'ForeignResult';
}

export interface NotificationEnd {
  readonly state: Exclude<EndState, 'delivered'> | Extract<DeliveryState, 'held'>;
  readonly reason: string;
}

type Recorded =
  | { readonly foreign: string }
  | {
      readonly foreign?: never;
      readonly follows: Next | null;
      readonly ended: NotificationEnd['state'] | 'delivered' | null;
      readonly eventType: string | null;
      readonly test: boolean;
      readonly later: boolean;
      readonly news: Pick<OperatorEvent, 'kind' | 'details'> | null;
      readonly health: EndpointHealth | null;
    };

const RECORD = `
  select record_attempt_1($1, $2::int, $3::int, $4::text::jsonb, $5, $6, make_interval(secs => $7::float8)) as recorded`;

async function record(
  reader: Reader,
  { notificationId, generation }: { readonly notificationId: string; readonly generation?: number },
  attempt: { readonly number: number; readonly result: object } | null,
  end: NotificationEnd | null,
) {
  const result = attempt && JSON.stringify(attempt.result);
  const of = [notificationId, generation ?? null, attempt?.number ?? null, result];
  const parameters = [...of, end?.state ?? null, end?.reason ?? null, ORDER_WAIT_SECONDS];
  const { recorded } = await oneRow<{ recorded: Recorded }>(reader, RECORD, parameters);
  if (recorded.foreign !== undefined)
    throw new ForeignResult(`attempt ${attempt?.number} of ${notificationId} ${recorded.foreign}`);
  // A caller may be waiting for the first attempt of a test.
  if (recorded.test) hint(reader, testHasMoved(notificationId));
  if (recorded.later) hint(reader, SOMETHING_IS_DUE);
  return recorded;
}

/** The type of the event if its notification has ended undelivered or is held; else null. */
const undelivered = ({ ended, eventType }: { ended: string | null; eventType: string | null }) =>
  ended === null || ended === 'delivered' ? null : eventType;

/**
 * Finishes the row of an attempt, plans the next one, and ends the notification with a 2xx, a 410 or the last
 * step of the ladder (record.sql). A second call with the same result changes nothing.
 * @returns `next`: what its workflow does now; `event`: the stored operator event, if any; `ended`: the type
 * of the event if its notification ended undelivered
 * @throws ForeignResult
 */
export async function recordAttempt(
  reader: Reader,
  { notificationId, attemptNumber: number }: AttemptRef,
  { outcome, address }: { readonly outcome: DeliveryOutcome; readonly address: string | null },
): Promise<{ readonly next: Next; readonly event: OperatorEvent | null; readonly ended: string | null }> {
  const recorded = await record(
    reader,
    { notificationId },
    { number, result: { ...outcome, address } },
    null,
  );
  const { health, news, follows } = recorded;
  const next = follows ?? { kind: 'due' };
  const ended = undelivered(recorded);
  if (health === null) return { next, event: null, ended };
  const { partnerId, environment, endpointId } = health;
  const judged = outcome.kind === 'delivered' || news !== null;
  const event = judged
    ? news && { ...news, partnerId, environment, endpointId }
    : await noteHealth(reader, health);
  return { next, event, ended };
}

/**
 * Ends a notification for which no further attempt is made, or holds it. One that has ended stays as it
 * is.
 * @param ref.generation of the workflow that asks; nothing changes when another one has begun
 * @returns the type of its event; null when nothing changed
 */
export const endNotification = async (reader: Reader, ref: NotificationRef, end: NotificationEnd) =>
  undelivered(await record(reader, ref, null, end));

type CancelAnswer =
  | { readonly kind: 'cancelled'; readonly was: NotificationState; readonly partnerId: string }
  | { readonly kind: 'under_way'; readonly generation: number; readonly partnerId: string };

/**
 * Cancels a notification without a workflow, under its lock. A workflow that starts all the same finds
 * it ended.
 * @param deadGeneration a generation whose workflow is known to be gone
 * @throws Refused when there is no such notification, or it has ended
 */
export async function cancelNotification(
  tx: DbOrTransaction,
  notificationId: string,
  deadGeneration: number | null = null,
): Promise<CancelAnswer> {
  const row = await lockNotification(tx, notificationId);
  if (row === null) throw new Refused('not_found', `Notification ${notificationId} does not exist.`);
  const { state, generation, partnerId } = row;
  if (state === 'started' && generation !== deadGeneration)
    return { kind: 'under_way', generation, partnerId };
  if ((await endNotification(tx, row, { state: 'cancelled', reason: 'operator' })) === null)
    throw new Refused('conflict', `Notification ${notificationId} has ended already: ${state}.`);
  return { kind: 'cancelled', was: state, partnerId };
}

const KEEP_ANSWER = `
  update delivery_attempts set answer = $3 where notification_id = $1 and attempt_number = $2::int`;

export const keepAnswer = (reader: Reader, of: AttemptRef, answer: string) =>
  runPrepared(reader, KEEP_ANSWER, [of.notificationId, of.attemptNumber, answer]);
