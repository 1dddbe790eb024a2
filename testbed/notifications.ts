import { TEST_EVENT_TYPE, END_STATES, type NotificationState } from '../domain/notification-states';
import { randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { ulid } from 'ulid';
import { testEvent } from '../contracts/webhook-event';
import type { Database, Reader } from '../db/postgres/connect';
import { hint } from '../db/postgres/hints';
import type { ApplicationState } from '../domain/application-states';
import type { Tenant } from '../domain/tenant';
import { parseKeyRing, type KeyRing } from '../db/endpoints/key-ring';
import { insertTestNotification } from '../db/notifications/create';
import { Refused } from '../db/refused';
import { createPartner } from '../db/catalogue/partners';
import { openAttempt } from '../db/notifications/attempt';
import { SOMETHING_IS_DUE, type NotificationRef } from '../db/notifications/notification';
import { registerEndpoint } from '../db/endpoints/endpoints';
import { creditApplications, deliveries, notifications } from '../db/schema';
import { generateWebhookSecret } from '../db/endpoints/secrets';
import { until } from './until';

export function newKeyRingText(): string {
  return `test:${randomBytes(32).toString('base64')}`;
}

/** In the sandbox unless told otherwise. */
type Owner = Pick<Tenant, 'partnerId'> & Partial<Tenant>;

/** Registers an endpoint, in place of one that may be there, and returns its secret. By default nothing can be sent to it. */
export async function addEndpoint(
  { db }: Database,
  wanted: Owner & { readonly url?: string; readonly keyRing?: KeyRing | string },
): Promise<{ endpointId: string; secret: string }> {
  const { partnerId, environment = 'sandbox', url = 'https://hook.example/x' } = wanted;
  const { keyRing: keys = newKeyRingText() } = wanted;
  const keyRing = typeof keys === 'string' ? parseKeyRing(keys) : keys;
  const secret = generateWebhookSecret();
  const { endpoint } = await db.transaction((tx) =>
    registerEndpoint(tx, { partnerId, environment, url, replace: true, secret, keyRing }),
  );
  return { endpointId: endpoint.endpointId, secret };
}

let partners = 200_000;

/** A new partner with an endpoint, so that counts and queues of tests do not mix. */
export async function newPartner(
  database: Database,
  keyRing: KeyRing | string = newKeyRingText(),
  environment: Tenant['environment'] = 'sandbox',
): Promise<{ partnerId: string; endpointId: string }> {
  partners += 1;
  const partnerId = `P${partners}`;
  await createPartner(database.db, { partnerId, name: 'Example' });
  const { endpointId } = await addEndpoint(database, { partnerId, environment, keyRing });
  return { partnerId, endpointId };
}

/** The next attempt is due at once, as often as a test wants. */
const AT_ONCE: readonly number[] = Array.from({ length: 100 }, () => 0);

/**
 * Opens an attempt. @throws when there is none to make.
 * @param ladder of the delivery from now on
 */
export async function openedAttempt(
  { db }: { readonly db: Reader },
  { notificationId, generation }: NotificationRef,
  ladder: readonly number[] = AT_ONCE,
) {
  const ladders = { status: ladder, test: ladder };
  const attempt = await openAttempt(db, { notificationId, generation }, { ladders });
  if (attempt.kind !== 'open') throw new Error(attempt.kind);
  return { notificationId, generation, attemptNumber: attempt.attemptNumber, attempt };
}

/** Stores a test notification as the API does; `refused`: why it did not. */
export async function storeTest(
  { db }: { readonly db: Reader },
  { partnerId, environment = 'sandbox' }: Owner,
): Promise<{ notificationId: string; eventId: string; refused: Refused | null }> {
  const notificationId = `ntf_${ulid()}`;
  const eventId = `evt_${ulid()}`;
  const body = JSON.stringify(testEvent({ eventId, environment, createdAt: new Date(), lender: null }));
  const stored = insertTestNotification(db, {
    notificationId,
    eventId,
    eventType: TEST_EVENT_TYPE,
    partnerId,
    environment,
    body,
    requestId: 'rq_test',
  });
  const refused = await stored.then(
    () => null,
    (error: unknown) => {
      if (error instanceof Refused) return error;
      throw error;
    },
  );
  return { notificationId, eventId, refused };
}

/** Stores so many, one after the other. @returns their ids */
export async function storeMany(
  count: number,
  store: (nth: number) => Promise<{ notificationId: string }>,
): Promise<string[]> {
  const ids: string[] = [];
  for (let nth = 0; nth < count; nth += 1) ids.push((await store(nth)).notificationId);
  return ids;
}

/**
 * Stores what tells of an application without a reference, due at once, and wakes the dispatcher. Its body says what its row says, with the
 * test event's words for the rest.
 */
export async function storeStatus(
  { db }: Pick<Database, 'db'>,
  wanted: Owner & { applicationId?: string; sequence?: number; status?: ApplicationState },
): Promise<{ notificationId: string; eventId: string }> {
  const {
    partnerId,
    environment = 'sandbox',
    applicationId = `app_${ulid()}`,
    sequence = 1,
    status = 'accepted',
  } = wanted;
  const notificationId = `ntf_${ulid()}`;
  const eventId = `evt_${ulid()}`;
  const eventType = `credit_application.${status}` as const;
  const { data, ...event } = testEvent({ eventId, environment, createdAt: new Date(), lender: null });
  await db
    .insert(creditApplications)
    .values({
      applicationId,
      lender: 'lender_a',
      lenderReference: applicationId,
      quoteId: `qte_${ulid()}`,
      partnerId,
      environment,
      merchantId: 'M100001',
      loanPence: 90_000,
      depositPence: 10_000,
      creditProduct: 'Classic 12',
      sequence,
    })
    .onConflictDoUpdate({
      target: creditApplications.applicationId,
      set: { sequence: sql`greatest(credit_applications.sequence, excluded.sequence)` },
    });
  await db.insert(notifications).values({
    notificationId,
    eventId,
    eventType,
    partnerId,
    environment,
    applicationId,
    sequence,
    body: JSON.stringify({
      ...event,
      event_type: eventType,
      sequence,
      data: { ...data, credit_application_id: applicationId, merchant_reference: null, status },
    }),
  });
  const queued = { notificationId, partnerId, environment, applicationId, sequence, test: false };
  await db.insert(deliveries).values(queued);
  hint(db, SOMETHING_IS_DUE);
  return { notificationId, eventId };
}

/**
 * Puts a stored notification into a state, as the schema's constraints want it: with an end, or with a row in `deliveries`.
 * @param columns of that row.
 */
export async function putInState(
  { sql }: Pick<Database, 'sql'>,
  notificationId: string,
  state: NotificationState,
  columns: Readonly<Record<string, string | number | boolean | null>> = {},
): Promise<void> {
  const now = new Date().toISOString();
  if (END_STATES.some((end) => end === state)) {
    await sql`
      update notifications n set end_state = ${state}, end_reason = ${state === 'delivered' ? null : 'exhausted'}, ended_at = ${now},
        delivered_at = case when ${state === 'delivered'} then coalesce(delivered_at, ${now}) else delivered_at end,
        generation = coalesce((select generation from deliveries d where d.notification_id = n.notification_id), generation),
        attempts = coalesce((select attempts from deliveries d where d.notification_id = n.notification_id), attempts)
      where notification_id = ${notificationId}`;
    await sql`delete from deliveries where notification_id = ${notificationId}`;
    return;
  }
  await sql`
    update notifications set end_state = null, end_reason = null, ended_at = null where notification_id = ${notificationId}`;
  await sql`
    insert into deliveries (notification_id, partner_id, environment, application_id, sequence, test, delivered, generation, attempts)
    select notification_id, partner_id, environment, application_id, sequence, event_type = ${TEST_EVENT_TYPE},
      delivered_at is not null, generation, attempts
    from notifications_now where notification_id = ${notificationId} on conflict do nothing`;
  const held = state === 'held';
  const only = held && { taken_at: null, reserved_month: null, next_attempt_at: null, paused_at: null };
  const set = {
    state,
    held_at: held ? now : null,
    hold_reason: held ? 'webhook_not_registered' : null,
    ...only,
    ...columns,
  };
  await sql`update deliveries set ${sql(set)} where notification_id = ${notificationId}`;
}

/** A notification as it stands. */
export interface Standing {
  readonly id: string;
  readonly state: string;
  readonly reason: string | null;
  readonly generation: number;
  /** Attempts by its row, and their outcomes, or `under way`, by their numbers. */
  readonly made: number;
  readonly attempts: readonly string[];
  /** Whether it was ever delivered, and whether it has a unit of the month's quota reserved. */
  readonly delivered: boolean;
  readonly reserved: boolean;
}

/** All that are stored, by their ids. */
export async function standings({ sql }: Pick<Database, 'sql'>): Promise<Standing[]> {
  return [
    ...(await sql<Standing[]>`
      select notification_id as id, state, end_reason as reason, generation, attempts as made,
        delivered_at is not null as delivered, reserved_month is not null as reserved,
        array(select coalesce(outcome, 'under way') from delivery_attempts a
          where a.notification_id = n.notification_id order by attempt_number) as attempts
      from notifications_now n order by 1`),
  ];
}

/** @throws when there is no such notification. */
export async function standingOf(database: Pick<Database, 'sql'>, notificationId: string): Promise<Standing> {
  const found = (await standings(database)).find(({ id }) => id === notificationId);
  if (found === undefined) throw new Error(`there is no ${notificationId}`);
  return found;
}

/** Waits until it is in this state. */
export const comesTo = (database: Pick<Database, 'sql'>, notificationId: string, state: NotificationState) =>
  until(
    async () => (await standingOf(database, notificationId)).state === state,
    `${notificationId} is ${state}`,
  );

/** Lets the database's clock run on from a moment. */
export async function startServiceClock(database: Database, at: string): Promise<void> {
  const [{ now } = { now: '' }] = await database.sql<
    { now: string }[]
  >`select clock_timestamp()::text as now`;
  await replaceServiceClock(database, `'${at}'::timestamptz + (clock_timestamp() - '${now}'::timestamptz)`);
}

/** Stops the database's clock at a moment; null: the real one again. */
export async function setServiceClock(database: Database, at: string | null): Promise<void> {
  await replaceServiceClock(database, at === null ? 'clock_timestamp()' : `'${at}'::timestamptz`);
}

/** Lets the database's clock go on as many seconds ahead of the real one. */
export async function advanceServiceClock(database: Database, seconds: number): Promise<void> {
  await replaceServiceClock(database, `clock_timestamp() + make_interval(secs => ${seconds})`);
}

/** @param moment what the database's clock says, in SQL */
export async function replaceServiceClock({ sql }: Database, moment: string): Promise<void> {
  await sql.unsafe(
    `create or replace function service_now() returns timestamptz language sql volatile as $$select ${moment}$$`,
  );
}
