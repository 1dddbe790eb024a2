import { ulid } from 'ulid';
import type { Database } from '../../db/postgres/connect';
import { applicationEventText } from '../../contracts/application-event';
import { insertStatusNotification } from '../../db/applications/notifications';
import { creditApplications } from '../../db/schema';
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
      const partnerId = partners[stored % partners.length] ?? '';
      stored += 1;
      storeChange(database, partnerId, (eventId) => own.add(eventId)).then(
        (moment) => committed.push(moment),
        reject,
      );
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

/**
 * The change, an application that a lender opens, and the notification it causes, in one transaction.
 * @param onWritten told the event's id before it is committed.
 * @returns it, and when it was committed.
 */
export async function storeChange(
  { db }: Database,
  partnerId: string,
  onWritten: (eventId: string) => void = () => undefined,
): Promise<Moment> {
  let eventId = '';
  await db.transaction(async (tx) => {
    const id = ulid();
    const [application] = await tx
      .insert(creditApplications)
      .values({
        applicationId: `app_${id}`,
        lender: 'lender_a',
        lenderReference: id,
        quoteId: `qte_${id}`,
        partnerId,
        environment: 'live',
        merchantId: 'M100001',
        merchantReference: 'basket 2041',
        loanPence: 90_000,
        depositPence: 10_000,
        creditProduct: 'Classic 12',
        sequence: 1,
      })
      .returning();
    if (application === undefined) throw new Error('an application was not stored');
    await insertStatusNotification(tx, application, null, {
      requestId: null,
      write: (change) => {
        eventId = change.eventId;
        onWritten(eventId);
        return applicationEventText(change);
      },
    });
  });
  return [eventId, monotonicMs()];
}
