import type postgres from 'postgres';
import { ulid } from 'ulid';
import {
  applicationEventExamples,
  applicationEventText,
  type ApplicationEvent,
} from '../../contracts/webhook-event';
import { openApplication } from '../../db/applications/create';
import { createPartner } from '../../db/catalogue/partners';
import type { KeyRing } from '../../db/endpoints/key-ring';
import { SOMETHING_IS_DUE } from '../../db/notifications/notification';
import type { Database } from '../../db/postgres/connect';
import { hint } from '../../db/postgres/hints';
import { deliveries, notifications } from '../../db/schema';
import type { ApplicationChange } from '../../domain/application';
import { addEndpoint } from '../../testbed/notifications';
import { pause } from './bench';
import type { Moment } from './receiver';
import { monotonicMs } from './rounds';

/** The statements of the benches on our schema and on Temporal's, but for those that fill a database (`past.ts`). */

/** Makes a partner with a live endpoint for each address. @returns their ids. */
export async function addPartners(
  database: Database,
  keyRing: KeyRing,
  urls: readonly string[],
): Promise<string[]> {
  const partners: string[] = [];
  const added: Promise<unknown>[] = [];
  for (const url of urls) {
    const { partnerId } = await createPartner(database.db, { partnerId: null, name: 'Bench' });
    added.push(addEndpoint(database, { partnerId, environment: 'live', url, keyRing }));
    partners.push(partnerId);
  }
  await Promise.all(added);
  return partners;
}

/**
 * An application that a lender opens, and the notification that this causes, as the service stores them.
 * @param onWritten called with the event's id before it is committed.
 * @returns the event's id, and when it was committed.
 */
export async function storeChange(
  { db }: Database,
  partnerId: string,
  onWritten: (eventId: string) => void = () => undefined,
): Promise<Moment> {
  let eventId = '';
  const id = ulid();
  const amounts = { loanPence: 90_000, depositPence: 10_000, creditProduct: 'Classic 12' };
  const of = {
    lender: 'lender_a',
    lenderReference: id,
    quoteId: `qte_${id}`,
    simulated: null,
    serviceKeyId: null,
  };
  const quote = {
    partnerId,
    environment: 'live',
    merchantId: 'M100001',
    merchantReference: 'basket 2041',
  } as const;
  const cause = {
    at: new Date(),
    requestId: null,
    write: (change: ApplicationChange) => {
      eventId = change.eventId;
      onWritten(eventId);
      return applicationEventText(change);
    },
  };
  const opened = await db.transaction((tx) => openApplication(tx, { ...of, ...amounts }, quote, cause));
  if (opened === null) throw new Error('an application was not stored');
  return [eventId, monotonicMs()];
}

const { value: example } = applicationEventExamples.accepted;

/** An event as our partners get it. */
export function benchEvent(eventId: string, applicationId: string): ApplicationEvent {
  const data = { ...example.data, credit_application_id: applicationId };
  return { ...example, event_id: eventId, created_at: new Date().toISOString(), data };
}

/** More rows than these have more parameters than a statement may have. */
const ROWS_AT_ONCE = 500;

/** Stores notifications that all become due with one commit. */
export async function storeBacklog({ db }: Database, partnerId: string, count: number): Promise<void> {
  await db.transaction(async (tx) => {
    for (let stored = 0; stored < count; stored += ROWS_AT_ONCE) {
      const rows = Array.from({ length: Math.min(ROWS_AT_ONCE, count - stored) }, () => {
        const [eventId, applicationId] = [`evt_${ulid()}`, `app_${ulid()}`];
        const body = benchEvent(eventId, applicationId);
        const { event_type: eventType, environment, sequence } = body;
        const merchantReference = body.data.merchant_reference;
        const ids = { notificationId: `ntf_${ulid()}`, eventId, applicationId, partnerId, merchantReference };
        return { ...ids, eventType, environment, sequence, body: JSON.stringify(body) };
      });
      await tx.insert(notifications).values(rows);
      await tx.insert(deliveries).values(rows.map((row) => ({ ...row, test: false })));
    }
    hint(tx, SOMETHING_IS_DUE);
  });
}

/** The part of a stage that shows whether deliveries are under way. */
interface UnderWay {
  readonly database: Database;
  /** Superuser of Temporal's own database. */
  readonly temporalSql: postgres.Sql;
  readonly temporal: { readonly namespace: string };
}

/** Cancels the notifications that are due, and waits until the others have ended. @returns the number of cancelled ones. */
export async function cancelDue(stage: UnderWay): Promise<number> {
  const { sql } = stage.database;
  const cancelled = await sql`
    with gone as (
      delete /* bench */ from deliveries where state = 'queued' and due_at <= service_now() returning notification_id)
    update /* bench */ notifications n set end_state = 'cancelled', end_reason = 'operator', ended_at = service_now()
    from gone where n.notification_id = gone.notification_id`;
  await settled(stage);
  // Tests that were cancelled gave nothing back.
  await sql`update /* bench */ monthly_counts set reserved = 0`;
  return cancelled.count;
}

/** Longest wait for that, ms: what failed twice waits for a minute before its third attempt. */
const SETTLE_LIMIT_MS = 180_000;

/** Waits until no notification is open, and no workflow either. @throws when that takes too long. */
export async function settled({ database, temporalSql, temporal }: UnderWay): Promise<void> {
  const deadline = performance.now() + SETTLE_LIMIT_MS;
  for (;;) {
    const [ours] = await database.sql<{ open: number }[]>`
      select /* bench */ count(*)::int as open from deliveries where state <> 'held'`;
    const [theirs] = await temporalSql<{ open: number }[]>`
      select /* bench */ count(*)::int as open from current_executions
      where state in (1, 2) and namespace_id = (select id from namespaces where name = ${temporal.namespace})
        and (workflow_id like 'notification/%' or workflow_id like 'evt_%')`;
    if (ours?.open === 0 && theirs?.open === 0) return;
    if (performance.now() > deadline)
      throw new Error(`${ours?.open} notifications and ${theirs?.open} workflows do not end`);
    await pause(5);
  }
}

export async function newestWorkflows({ sql }: Database, count: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select 'notification/' || notification_id || '/' || generation as id
    from notifications_now order by notification_id desc limit ${count}`;
  return rows.map(({ id }) => id);
}

/** The number of attempts to some partners' endpoints by outcome, or by failure. */
export async function countOutcomes(
  { sql }: Database,
  partners: readonly string[],
): Promise<Readonly<Record<string, number>>> {
  const rows = await sql<{ what: string; attempts: number }[]>`
    select /* bench */ coalesce(a.failure, a.outcome, 'under way') as what, count(*)::int as attempts
    from delivery_attempts a join notifications n using (notification_id)
    where n.partner_id = any(${partners as string[]}) group by 1`;
  return Object.fromEntries(rows.map(({ what, attempts }) => [what, attempts]));
}

export async function countRows({ sql }: Database, table: 'quotes' | 'notifications'): Promise<number> {
  const [row] = await sql<{ rows: number }[]>`select count(*)::float8 as rows from ${sql(table)}`;
  return row?.rows ?? Number.NaN;
}
