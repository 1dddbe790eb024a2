import { and, eq, isNull, sql } from 'drizzle-orm';
import { ulid } from 'ulid';
import { namedOffers, offerRefusal } from '../../domain/application';
import type { ApplicationTerms, WriteChange, OfferRefusal } from '../../domain/application';
import { parsePence } from '../../domain/money';
import { readReferenceFormat } from '../../domain/reference-format';
import { appendOperatorEventOnce, type OperatorEvent } from '../audit/operator-events';
import { type ServiceCaller } from '../service-keys';
import { statusNotification, type ChangeCause } from '../notifications/create';
import { isDue } from '../notifications/notification';
import { msText, oneRow, type Db, type DbOrTransaction, type Reader } from '../postgres/connect';
import { hint } from '../postgres/hints';
import type { StoredQuote } from '../quotes/read';
import { decodeFitted } from '../quotes/store';
import { creditApplications } from '../schema';
import type { Application } from './applications';

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
  const { known, referenceFormat, quote, at } = await readBefore(db, wanted);
  if (known) return again(await existing(db, wanted), wanted);
  if (referenceFormat === null) return { kind: 'lender_not_found', ofOthers: false };
  if (quote === null || quote.environment !== service.environment)
    return { kind: 'quote_not_found', ofOthers: quote !== null };
  if (readReferenceFormat(referenceFormat)?.(wanted.lenderReference) !== true)
    return { kind: 'reference_format' };
  const refusal = offerRefusal(offersOf(quote), wanted);
  if (refusal === 'product_not_quoted')
    return { kind: refusal, ofOthers: namedOffers(quote.fitted, wanted).length > 0 };
  if (refusal !== null) return { kind: refusal };
  const opened = { ...wanted, serviceKeyId: service.keyId, simulated: null };
  const cause = { ...wanted, write, at };
  const application = await db.transaction((tx) => openApplication(tx, opened, quote, cause));
  if (application !== null) return { kind: 'created', application, isNew: true };
  // It was opened from another quote before, or by another call at this moment.
  return again(await existing(db, wanted), wanted);
}

type QuoteOfApplication = Pick<
  StoredQuote,
  'partnerId' | 'environment' | 'merchantId' | 'merchantReference' | 'fitted' | 'response'
> &
  Pick<StoredQuote, 'loanPence' | 'depositPence' | 'usedDepositPence'>;

// `response` is read where nothing else has the deposit.
const BEFORE = `
  select ${msText('service_now()')} as "nowMs", (select reference_format from lenders where lender = $1) as "referenceFormat",
    exists (
      select from credit_applications a
      where a.lender = $1 and a.environment = $2 and a.lender_reference = $3 and a.simulated is null and a.quote_id = $4) as known,
    q.partner_id as "partnerId", q.environment, q.merchant_id as "merchantId", q.merchant_reference as "merchantReference",
    q.loan_pence::float8 as "loanPence", q.deposit_pence::float8 as "depositPence",
    q.used_deposit_pence::float8 as "usedDepositPence", q.fitted,
    case when q.used_deposit_pence is null then q.response end as response
  from (select 1) one left join quotes q on q.quote_id = $4`;

/** What decides about a new application, in one statement. `known`: this reference was opened from this quote. */
async function readBefore(reader: Reader, { service, lenderReference, quoteId }: NewApplication) {
  type Text = { readonly fitted: string; readonly response: string | null };
  type Row = (Omit<QuoteOfApplication, keyof Text> & Text) | Record<keyof QuoteOfApplication, null>;
  const { nowMs, known, referenceFormat, ...quote } = await oneRow<
    Row & { readonly nowMs: number; readonly known: boolean; readonly referenceFormat: string | null }
  >(reader, BEFORE, [service.lender, service.environment, lenderReference, quoteId]);
  return { known, referenceFormat, at: new Date(nowMs), quote: decode(quote) };

  function decode(row: Row): QuoteOfApplication | null {
    if (row.fitted === null) return null;
    const response: unknown = row.response === null ? null : JSON.parse(row.response);
    return { ...row, fitted: decodeFitted(JSON.parse(row.fitted)), response };
  }
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
  Pick<Application, 'lender' | 'lenderReference' | 'quoteId' | 'serviceKeyId' | 'simulated'>;

const OPEN = `
  select open_application_1($1, $2, $3, $4, $5, $6, $7, $8, $9::int8, $10::int8, $11, $12::int2, $13, $14, $15::text::timestamptz,
    $16, $17, $18, $19) as state`;

/**
 * Stores an application and its notification, in one statement of a transaction.
 * @param cause.at when it is opened, by the clock of the database
 * @returns null when its reference, or its number among the simulated ones, is taken
 */
export async function openApplication(
  tx: DbOrTransaction,
  opened: Opened,
  quote: Pick<StoredQuote, 'partnerId' | 'environment' | 'merchantId' | 'merchantReference'>,
  { at, requestId, traceParent = null, write }: ChangeCause & { readonly at: Date },
): Promise<Application | null> {
  const { lender, lenderReference, quoteId, loanPence, depositPence, creditProduct } = opened;
  const { simulated, serviceKeyId } = opened;
  const { partnerId, environment, merchantId, merchantReference } = quote;
  const application: Application = {
    applicationId: `app_${ulid()}`,
    lender,
    lenderReference,
    quoteId,
    loanPence,
    depositPence,
    creditProduct,
    simulated,
    serviceKeyId,
    partnerId,
    environment,
    merchantId,
    merchantReference,
    requestId,
    state: 'created',
    stateOccurredAt: at,
    sequence: 1,
    createdAt: at,
    updatedAt: at,
  };
  const { notificationId, eventId, body } = statusNotification(application, null, write);
  const of = [
    application.applicationId,
    lender,
    lenderReference,
    quoteId,
    partnerId,
    environment,
    merchantId,
  ];
  const terms = [merchantReference, loanPence, depositPence, creditProduct, simulated];
  const from = [serviceKeyId, requestId, at.toISOString(), notificationId, eventId, body, traceParent];
  const { state } = await oneRow<{ state: string | null }>(tx, OPEN, [...of, ...terms, ...from]);
  if (state === null) return null;
  if (state === 'queued') hint(tx, isDue(application));
  return application;
}

/** The application of this reference, which exists. */
async function existing(db: DbOrTransaction, { service, lenderReference }: NewApplication) {
  const [row] = await db
    .select()
    .from(creditApplications)
    .where(
      and(
        eq(creditApplications.lender, service.lender),
        eq(creditApplications.environment, service.environment),
        eq(creditApplications.lenderReference, lenderReference),
        isNull(creditApplications.simulated),
      ),
    );
  if (row === undefined) throw new Error(`${service.lender} ${lenderReference} came and went`);
  return row;
}

// What a quote offered. A raised deposit lowers the loan.
function offersOf(quote: QuoteOfApplication) {
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
