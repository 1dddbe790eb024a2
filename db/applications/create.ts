import { and, eq, isNull, sql, type SQL } from 'drizzle-orm';
import { ulid } from 'ulid';
import { namedOffers, offerRefusal } from '../../domain/application';
import type { ApplicationTerms, WriteChange, OfferRefusal } from '../../domain/application';
import { parsePence } from '../../domain/money';
import { readReferenceFormat } from '../../domain/reference-format';
import { appendOperatorEventOnce, type OperatorEvent } from '../audit/operator-events';
import { inScope, type ServiceCaller } from '../service-keys';
import { insertStatusNotification } from '../notifications/create';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { findQuote, type StoredQuote } from '../quotes/read';
import { creditApplications } from '../schema';
import type { Application } from './applications';
import { findLender } from './lenders';

export interface NewApplication
  extends
    ApplicationTerms,
    Pick<Application, 'lender' | 'lenderReference' | 'quoteId' | 'merchantReference' | 'requestId'> {
  /** Who asks. Other lenders, their products, and quotes of the other environment do not exist for it. */
  readonly service: ServiceCaller;
  readonly traceParent?: string | null;
}

export type CreateApplicationAnswer =
  | { readonly kind: 'created'; readonly application: Application; readonly isNew: boolean }
  | { readonly kind: 'exists'; readonly application: Application }
  /** None exists for this key. `ofOthers`, for the log: it belongs to another lender or environment. */
  | {
      readonly kind: 'lender_not_found' | 'quote_not_found' | 'product_not_quoted';
      readonly ofOthers: boolean;
    }
  | { readonly kind: 'reference_format' | Exclude<OfferRefusal, 'product_not_quoted'> };

/**
 * Opens an application with its first notification. Its terms must have been quoted. The same reference
 * with the same content is the same application.
 */
export async function createApplication(
  db: Db,
  wanted: NewApplication,
  write: WriteChange,
): Promise<CreateApplicationAnswer> {
  const { service } = wanted;
  if (wanted.lender !== service.lender) return { kind: 'lender_not_found', ofOthers: true };
  // An open application stays open, though formats change and quotes are dropped.
  const known = await findBy(db, wanted, eq(creditApplications.quoteId, wanted.quoteId));
  if (known !== null) return again(known, wanted);
  const lender = await findLender(db, wanted.lender);
  if (lender === null) return { kind: 'lender_not_found', ofOthers: false };
  const quote = await findQuote(db, wanted.quoteId);
  if (quote === null || quote.environment !== service.environment)
    return { kind: 'quote_not_found', ofOthers: quote !== null };
  if (readReferenceFormat(lender.referenceFormat)?.(wanted.lenderReference) !== true)
    return { kind: 'reference_format' };
  const refusal = offerRefusal(offersOf(quote), wanted);
  if (refusal === 'product_not_quoted')
    return { kind: refusal, ofOthers: namedOffers(quote.fitted, wanted).length > 0 };
  if (refusal !== null) return { kind: refusal };
  return db.transaction(async (tx) => {
    const opened = { ...wanted, serviceKeyId: service.keyId, simulated: null };
    const application = await openApplication(tx, opened, quote, { ...wanted, write });
    if (application === null) {
      // It was opened from another quote before, or by another call at this moment.
      const other = await findBy(tx, wanted);
      if (other === null) throw new Error(`${wanted.lender} ${wanted.lenderReference} came and went`);
      return again(other, wanted);
    }
    return { kind: 'created', application, isNew: true };
  });
}

function again(application: Application, wanted: NewApplication): CreateApplicationAnswer {
  const same =
    application.quoteId === wanted.quoteId &&
    application.loanPence === wanted.loanPence &&
    application.depositPence === wanted.depositPence &&
    application.creditProduct === wanted.creditProduct &&
    (wanted.merchantReference === null || application.merchantReference === wanted.merchantReference);
  return same ? { kind: 'created', application, isNew: false } : { kind: 'exists', application };
}

type Opened = ApplicationTerms &
  Pick<Application, 'lender' | 'lenderReference' | 'quoteId' | 'requestId' | 'serviceKeyId' | 'simulated'>;

/**
 * Inserts an application and its notification.
 * @returns null when its reference, or its number among the simulated ones, is taken
 */
export async function openApplication(
  tx: DbOrTransaction,
  opened: Opened,
  { partnerId, environment, merchantId, merchantReference }: StoredQuote,
  cause: Parameters<typeof insertStatusNotification>[3],
): Promise<Application | null> {
  const [application] = await tx
    .insert(creditApplications)
    .values({
      ...opened,
      applicationId: `app_${ulid()}`,
      partnerId,
      environment,
      merchantId,
      merchantReference,
      sequence: 1,
    })
    .onConflictDoNothing()
    .returning();
  if (application === undefined) return null;
  await insertStatusNotification(tx, application, null, cause);
  return application;
}

async function findBy(db: DbOrTransaction, { service, lenderReference }: NewApplication, condition?: SQL) {
  const [row] = await db
    .select()
    .from(creditApplications)
    .where(and(inScope(service), eq(creditApplications.lenderReference, lenderReference), condition));
  return row ?? null;
}

// What a quote offered. A raised deposit lowers the loan.
function offersOf(quote: StoredQuote) {
  const { fitted, merchantReference, loanPence } = quote;
  const asked = quote.depositPence ?? 0;
  const depositPence = quote.usedDepositPence ?? correctedDeposit(quote.response) ?? asked;
  return {
    merchantReference,
    fitted,
    summary: { depositPence, loanPence: loanPence + asked - depositPence },
  };
}

/** For rows of builds before `used_deposit_pence`, whose answer alone contains a raised deposit. */
function correctedDeposit(response: unknown): number | null {
  const { data } = response as { data?: { deposit_adjustment?: { corrected_deposit?: string } } };
  const corrected = parsePence(data?.deposit_adjustment?.corrected_deposit ?? '');
  return corrected.ok ? corrected.pence : null;
}

/** A shopper may try a few lenders, and opens fewer applications than this from one quote. */
const USUAL_APPLICATIONS_OF_QUOTE = 20;

/**
 * Counts the applications that lenders have opened from a quote, after one more was committed, so that
 * the last of several at once sees them all. None is refused, because many shoppers may share a quote.
 * @returns null for a usual number; else the warning, and whether it is the first for this quote
 */
export async function warnOfCrowdedQuote(
  db: DbOrTransaction,
  { quoteId, partnerId, environment, merchantId, lender }: Application,
): Promise<{ readonly event: OperatorEvent; readonly isNew: boolean } | null> {
  const ofQuote = db
    .select({ one: sql`1` })
    .from(creditApplications)
    .where(and(eq(creditApplications.quoteId, quoteId), isNull(creditApplications.simulated)))
    .limit(USUAL_APPLICATIONS_OF_QUOTE + 1);
  if ((await ofQuote).length <= USUAL_APPLICATIONS_OF_QUOTE) return null;
  const details = { service_quote_id: quoteId, merchant_id: merchantId, lender };
  const event: OperatorEvent = { kind: 'quote_crowded', partnerId, environment, endpointId: null, details };
  return { event, isNew: await appendOperatorEventOnce(db, event) };
}
