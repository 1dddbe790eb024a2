import { and, eq, isNotNull } from 'drizzle-orm';
import { randomInt } from 'node:crypto';
import { ulid } from 'ulid';
import { namedOffers, type WriteChange } from '../../domain/application';
import { mayFollow, type ApplicationState } from '../../domain/application-states';
import { sampleReference } from '../../domain/reference-format';
import { databaseNow, firstRow, msText, oneRow, type Db, type DbOrTransaction } from '../postgres/connect';
import { findQuote } from '../quotes/read';
import { creditApplications } from '../schema';
import { findApplicationForPartner, type Application, type PartnerApplication } from './applications';
import { openApplication } from './create';
import { applyLenderEvent, insertEvent } from './lender-events';
import { findLender, type Lender } from './lenders';

/** The check of the column `simulated` has the same number. */
const MOST_OF_QUOTE = 20;
/** Far more than a story has, and few enough to be read with each answer. */
const MOST_EVENTS = 100;
/** References that are tried, in one statement. Nine of ten may be taken. */
const TRIED_REFERENCES = 64;

interface Simulation {
  /** Who plays the lender in the sandbox. Quotes and applications of others do not exist for it. */
  readonly partnerId: string;
  /** Its API key. */
  readonly keyId: string;
  readonly requestId: string;
  /** `traceparent` of the request, where traces are made. */
  readonly traceParent?: string | null;
}

export type SimulateAnswer =
  | { readonly kind: 'created'; readonly application: PartnerApplication }
  | { readonly kind: 'quote_not_found' | 'product_not_quoted' | 'limit_reached' | 'no_reference_left' };

interface WantedApplication extends Simulation {
  readonly quoteId: string;
  readonly creditProduct: string | null;
  /** States that it reaches at once, after `created`. */
  readonly story: readonly ApplicationState[];
}

/**
 * Opens an application from a partner's own sandbox quote, with all events of its story, in one
 * transaction: all of it is stored, or nothing is. Calls of other processes for the same quote
 * meet at the unique index over its number.
 */
export async function simulateApplication(
  db: Db,
  wanted: WantedApplication,
  write: WriteChange,
): Promise<SimulateAnswer> {
  const { quoteId, partnerId, creditProduct } = wanted;
  const quote = await findQuote(db, quoteId);
  if (quote === null || quote.partnerId !== partnerId || quote.environment !== 'sandbox') {
    return { kind: 'quote_not_found' };
  }
  const [offer] = namedOffers(quote.fitted, { creditProduct });
  if (offer === undefined) return { kind: 'product_not_quoted' };
  const lender = await findLender(db, offer.lender);
  if (lender === null) throw new Error(`${offer.lender} of ${quoteId} is gone`);
  return db.transaction(async (tx) => {
    for (;;) {
      const { next, nowMs } = await oneRow<{ next: number; nowMs: number }>(tx, NEXT, [quoteId]);
      if (next > MOST_OF_QUOTE) return { kind: 'limit_reached' };
      const lenderReference = await freeReference(tx, partnerId, lender);
      if (lenderReference === null) return { kind: 'no_reference_left' };
      const taken = { lenderReference, simulated: next, serviceKeyId: wanted.keyId };
      const cause = { ...wanted, write, at: new Date(nowMs) };
      const opened = await openApplication(tx, { ...offer, ...taken, quoteId }, quote, cause);
      // Another call has taken the number or the reference, and is committed.
      if (opened === null) continue;
      let application: Application = opened;
      for (const status of wanted.story)
        application = await moveOn(tx, application, { ...wanted, status, write });
      return { kind: 'created', application: await asShown(tx, application) };
    }
  });
}

const NEXT = `
  select coalesce(max(simulated), 0)::int + 1 as next, ${msText('service_now()')} as "nowMs" from credit_applications
  where quote_id = $1 and simulated is not null`;

// Without its offset, before Postgres has counted the rows, all simulated applications of the partner would be read.
const FREE = `
  select wanted as reference from unnest($1::text[]) with ordinality w (wanted, at)
  where not exists (
    select from credit_applications
    where partner_id = $2 and lender = $3 and lender_reference = wanted and simulated is not null offset 0)
  order by at limit 1`;

/** A reference of the lender's form that no simulated application of the partner has; null when none is found. */
async function freeReference(tx: DbOrTransaction, partnerId: string, { lender, referenceFormat }: Lender) {
  const tried = Array.from({ length: TRIED_REFERENCES }, () =>
    sampleReference(referenceFormat, (of) => randomInt(of)),
  );
  const free = await firstRow<{ reference: string }>(tx, FREE, [tried, partnerId, lender]);
  return free?.reference ?? null;
}

type SimulateEventAnswer =
  | { readonly kind: 'applied'; readonly application: PartnerApplication }
  | { readonly kind: 'application_not_found' | 'limit_reached' }
  | { readonly kind: 'not_applicable'; readonly state: ApplicationState };

/** Records an event as the lender would. One that may not follow now is refused, and not stored. */
export async function simulateLenderEvent(
  db: Db,
  wanted: Simulation & { readonly applicationId: string; readonly status: ApplicationState },
  write: WriteChange,
): Promise<SimulateEventAnswer> {
  const { applicationId, partnerId, status } = wanted;
  return db.transaction(async (tx) => {
    const [application] = await tx
      .select()
      .from(creditApplications)
      .where(
        and(
          eq(creditApplications.applicationId, applicationId),
          eq(creditApplications.partnerId, partnerId),
          isNotNull(creditApplications.simulated),
        ),
      )
      .for('update');
    if (application === undefined) return { kind: 'application_not_found' };
    if (!mayFollow(application.state, status)) return { kind: 'not_applicable', state: application.state };
    if (application.sequence >= MOST_EVENTS) return { kind: 'limit_reached' };
    await moveOn(tx, application, { ...wanted, write });
    return { kind: 'applied', application: await asShown(tx, application) };
  });
}

async function moveOn(
  tx: DbOrTransaction,
  application: Application,
  cause: Simulation & { readonly status: ApplicationState; readonly write: WriteChange },
): Promise<Application> {
  const lenderEventId = `sim_${ulid()}`;
  const { applicationId } = application;
  const made = {
    applicationId,
    lenderEventId,
    occurredAt: await databaseNow(tx),
    waitSeconds: 0,
    serviceKeyId: cause.keyId,
  };
  const inserted = await insertEvent(tx, application, { ...cause, ...made, verdict: 'applied' });
  if (inserted === null) throw new Error(`${lenderEventId} was there`);
  const { event } = inserted;
  return applyLenderEvent(tx, application, event, { ...cause, at: event.receivedAt });
}

async function asShown(tx: DbOrTransaction, application: Application): Promise<PartnerApplication> {
  const shown = await findApplicationForPartner(tx, application.applicationId, application);
  if (shown === null) throw new Error(`${application.applicationId} is gone under its own lock`);
  return shown;
}
