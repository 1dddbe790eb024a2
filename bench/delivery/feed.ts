import { ulid } from 'ulid';
import type { Database } from '../../db/connect';
import { NOTIFICATIONS_CHANNEL } from '../../db/queries/test-notifications';
import { benchEvent } from './event';
import type { Moment } from './messages';
import { monotonicMs } from './monotonic';
import type { Receivers } from './receivers';

export interface Feeding {
  readonly count: number;
  /** Most that are stored and not yet received. */
  readonly inFlight: number;
  /** Milliseconds between one that is received and the next. */
  readonly restMs: number;
}

/**
 * Stores notifications as the service does, a new one for each that is received, taking the partners in turn.
 * @returns when each was committed.
 */
export async function feed(
  { database, receivers }: { readonly database: Database; readonly receivers: Receivers },
  partners: readonly string[],
  { count, inFlight, restMs }: Feeding,
): Promise<Moment[]> {
  const committed: Moment[] = [];
  let stored = 0;
  let received = 0;
  const own = new Set<string>();
  await new Promise<void>((resolve, reject) => {
    const next = () => {
      if (stored >= count) return;
      const eventId = `evt_${ulid()}`;
      own.add(eventId);
      const partnerId = partners[stored % partners.length] ?? '';
      stored += 1;
      storeEvent(database, partnerId, eventId).then((at) => committed.push([eventId, at]), reject);
    };
    receivers.onArrival = (eventId) => {
      if (!own.has(eventId)) return;
      received += 1;
      if (received === count) resolve();
      else if (restMs > 0) setTimeout(next, restMs);
      else next();
    };
    for (let at = 0; at < inFlight; at += 1) next();
  });
  // An arrival may be known before the answer to its commit.
  while (committed.length < count) await new Promise((resolve) => setTimeout(resolve, 1));
  return committed;
}

/** The change and the notification it causes, in one transaction. @returns when it was committed, monotonic ms. */
export async function storeEvent({ sql }: Database, partnerId: string, eventId: string): Promise<number> {
  const id = ulid();
  const notificationId = `ntf_${id}`;
  const applicationId = `app_${id}`;
  const body = JSON.stringify(benchEvent(eventId, applicationId));
  await sql.begin(async (tx) => {
    await tx`insert into bench_changes (application_id, status) values (${applicationId}, 'accepted')`;
    await tx`insert into notifications
      (notification_id, event_id, event_type, partner_id, environment, application_id, sequence, body)
      values (${notificationId}, ${eventId}, 'credit_application.accepted', ${partnerId}, 'live', ${applicationId}, 1, ${body})`;
    await tx`select pg_notify(${NOTIFICATIONS_CHANNEL}, ${notificationId})`;
  });
  return monotonicMs();
}
