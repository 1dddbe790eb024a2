import { sql } from 'drizzle-orm';
import { check, index, integer, pgTable, smallint, text, unique, uniqueIndex } from 'drizzle-orm/pg-core';
import { APPLICATION_STATES, VERDICTS } from '../../domain/application-states';
import { jsonText, moment, pence, rowNumber, serviceNow } from './columns';
import { ofLender, ofPartner } from './parties';

/**
 * Quotes as answered. They are partitioned by month through the id, `qte_` and a ULID, which sorts by
 * time. Old months are dropped whole (db/retention), so nothing references this table and it references
 * nothing.
 */
export const quotes = pgTable('quotes', {
  quoteId: text('quote_id').primaryKey(),
  createdAt: moment('created_at').notNull().default(serviceNow),
  partnerId: text('partner_id').notNull(),
  keyId: text('key_id').notNull(),
  environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
  merchantId: text('merchant_id').notNull(),
  loanPence: pence('loan_pence').notNull(),
  depositPence: pence('deposit_pence'),
  /** Deposit of the summary's link, raised or as requested; null in rows of builds before the column. */
  usedDepositPence: pence('used_deposit_pence'),
  merchantFinanceUrl: text('merchant_finance_url').notNull(),
  merchantReference: text('merchant_reference'),
  requestId: text('request_id').notNull(),
  response: jsonText('response').notNull(),
  /** Every product that fitted, shown or not, as db/quotes/store.ts writes it. */
  fitted: jsonText('fitted').notNull(),
});

export const creditApplications = pgTable(
  'credit_applications',
  {
    applicationId: text('application_id').primaryKey(),
    lender: ofLender(),
    lenderReference: text('lender_reference').notNull(),
    /** No foreign key: quotes are dropped with their month, applications stay. */
    quoteId: text('quote_id').notNull(),
    partnerId: ofPartner(),
    environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
    merchantId: text('merchant_id').notNull(),
    merchantReference: text('merchant_reference'),
    loanPence: pence('loan_pence').notNull(),
    depositPence: pence('deposit_pence').notNull(),
    /** Null when the link named none. */
    creditProduct: text('credit_product'),
    state: text('state', { enum: APPLICATION_STATES }).notNull().default('created'),
    stateOccurredAt: moment('state_occurred_at').notNull().default(serviceNow),
    /** Sequence of its newest notification, counted under the lock of the row. */
    sequence: integer('sequence').notNull().default(0),
    /** Its number among its quote's simulated applications; null for a lender's. */
    simulated: smallint('simulated'),
    /** A lender's service key; of a simulated one the partner's API key. */
    serviceKeyId: text('service_key_id'),
    requestId: text('request_id'),
    createdAt: moment('created_at').notNull().default(serviceNow),
    updatedAt: moment('updated_at').notNull().default(serviceNow),
  },
  (t) => [
    // A lender's reference is unique within an environment.
    uniqueIndex('credit_applications_reference')
      .on(t.lender, t.environment, t.lenderReference)
      .where(sql`${t.simulated} is null`),
    // That of a simulated application is unique for its partner, so that no partner uses up another's.
    uniqueIndex('credit_applications_simulated_reference')
      .on(t.partnerId, t.lender, t.lenderReference)
      .where(sql`${t.simulated} is not null`),
    // At most 20 simulated applications of a quote. Calls that come at once wait here for each other.
    uniqueIndex('credit_applications_simulated')
      .on(t.quoteId, t.simulated)
      .where(sql`${t.simulated} is not null`),
    // `ops applications list --partner`.
    index('credit_applications_partner').on(t.partnerId, t.applicationId),
    // `ops … list --reference`, over all partners.
    index('credit_applications_merchant_reference')
      .on(t.merchantReference)
      .where(sql`${t.merchantReference} is not null`),
    // The number of applications of a quote (create.ts), and `ops applications list --quote`.
    index('credit_applications_quote').on(t.quoteId),
    // The retention keeps quotes of applications that have not ended (ids_that_stay).
    index('credit_applications_open_quote')
      .on(t.quoteId)
      .where(
        sql`${t.state} not in ('declined', 'cancelled', 'expired', 'completed', 'partially_refunded', 'refunded')`,
      ),
    check(
      'credit_applications_simulated_form',
      sql`${t.simulated} is null or ${t.simulated} between 1 and 20 and ${t.environment} = 'sandbox'`,
    ),
    check('credit_applications_environment', sql`${t.environment} in ('sandbox', 'live')`),
    check(
      'credit_applications_moments',
      sql`isfinite(${t.stateOccurredAt}) and isfinite(${t.createdAt}) and isfinite(${t.updatedAt})`,
    ),
  ],
);

/** Events of lenders, applied or not. Only an event that waits changes. */
export const lenderEvents = pgTable(
  'lender_events',
  {
    eventNumber: rowNumber('event_number'),
    applicationId: text('application_id')
      .notNull()
      .references(() => creditApplications.applicationId),
    lender: text('lender').notNull(),
    environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
    lenderEventId: text('lender_event_id').notNull(),
    status: text('status', { enum: APPLICATION_STATES }).notNull(),
    occurredAt: moment('occurred_at').notNull(),
    receivedAt: moment('received_at').notNull().default(serviceNow),
    verdict: text('verdict', { enum: VERDICTS }).notNull(),
    stateAfter: text('state_after', { enum: APPLICATION_STATES }).notNull(),
    /** While it waits for the steps before it: when it is applied without them. Null otherwise. */
    waitsUntil: moment('waits_until'),
    /** Set when it is applied: the state it replaced, its notification's sequence, and when. */
    previousState: text('previous_state', { enum: APPLICATION_STATES }),
    sequence: integer('sequence'),
    appliedAt: moment('applied_at'),
    serviceKeyId: text('service_key_id'),
    requestId: text('request_id'),
  },
  (t) => [
    unique('lender_events_lender_event').on(t.lender, t.environment, t.lenderEventId),
    // The history of an application, and its waiting events.
    index('lender_events_application').on(t.applicationId, t.eventNumber),
    // Waiting events of all applications, a few rows at any time.
    index('lender_events_waiting')
      .on(t.waitsUntil)
      .where(sql`${t.waitsUntil} is not null`),
    check(
      'lender_events_moments',
      sql`isfinite(${t.occurredAt}) and isfinite(${t.receivedAt}) and isfinite(${t.waitsUntil}) and isfinite(${t.appliedAt})`,
    ),
  ],
);
