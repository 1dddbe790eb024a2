import { and, eq, isNotNull } from 'drizzle-orm';
import { randomInt } from 'node:crypto';
import { ulid } from 'ulid';
import { namedOffers, type WriteChange } from '../../domain/application';
import { mayFollow, type ApplicationState } from '../../domain/application-states';
import { sampleReference } from '../../domain/reference-format';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { findQuote } from '../quotes/read';
import { creditApplications } from '../schema';
import type { Application } from './applications';
import { openApplication } from './create';
import { applyLenderEvent, insertEvent } from './lender-events';
import { findLender } from './lenders';

/** The check of the column `simulated` has the same number. */
const MOST_OF_QUOTE = 20;
/** A try is lost to another call, or to a reference that exists. */
const MOST_TRIES = 100;

interface Simulation {
  /** Who plays the lender in the sandbox. Quotes and applications of others do not exist for it. */
  readonly partnerId: string;
  readonly requestId: string;
  /** `traceparent` of the request, where traces are made. */
  readonly traceParent?: string | null;
}

export type SimulateAnswer =
  | { readonly kind: 'created'; readonly application: Application }
  | { readonly kind: 'quote_not_found' | 'product_not_quoted' | 'limit_reached' };

/**
 * Opens an application from a partner's own sandbox quote. A unique index over its number keeps the
 * limit; when the number is taken, another one is tried.
 */
export async function simulateApplication(
  db: Db,
  wanted: Simulation & { readonly quoteId: string; readonly creditProduct: string | null },
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
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const free = await freeNumbers(db, quoteId);
    if (free.length === 0) return { kind: 'limit_reached' };
    const terms = {
      ...offer,
      quoteId,
      lenderReference: sampleReference(lender.referenceFormat, (of) => randomInt(of)),
      requestId: wanted.requestId,
      serviceKeyId: null,
      simulated: free[randomInt(free.length)] ?? null,
    };
    const application = await db.transaction((tx) => openApplication(tx, terms, quote, { ...wanted, write }));
    if (application !== null) return { kind: 'created', application };
  }
  throw new Error(`no reference of ${lender.lender} is free`);
}

async function freeNumbers(db: DbOrTransaction, quoteId: string): Promise<number[]> {
  const { simulated } = creditApplications;
  const rows = await db
    .select({ simulated })
    .from(creditApplications)
    .where(and(eq(creditApplications.quoteId, quoteId), isNotNull(simulated)));
  const taken = new Set(rows.map((row) => row.simulated));
  return Array.from({ length: MOST_OF_QUOTE }, (_, at) => at + 1).filter((number) => !taken.has(number));
}

type SimulateEventAnswer =
  | { readonly kind: 'applied' }
  | { readonly kind: 'application_not_found' }
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
    const lenderEventId = `sim_${ulid()}`;
    const made = { lenderEventId, occurredAt: new Date(), serviceKeyId: null, waitSeconds: 0 };
    const event = await insertEvent(tx, application, { ...wanted, ...made, verdict: 'applied' });
    if (event === null) throw new Error(`${lenderEventId} was there`);
    await applyLenderEvent(tx, application, event, write);
    return { kind: 'applied' };
  });
}
