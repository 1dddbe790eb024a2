import { pgTable, text } from 'drizzle-orm/pg-core';
import { jsonText, moment, pence, serviceNow } from './columns';

/**
 * Quotes as answered. Partitioned by month through the id: a quote id is `qte_` and a ULID, so it sorts by time, and
 * a range of ids is a range of moments. Old months are dropped as whole partitions (db/postgres/partitions.ts), which is why
 * nothing references this table and it references nothing.
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
  merchantFinanceUrl: text('merchant_finance_url').notNull(),
  merchantReference: text('merchant_reference'),
  requestId: text('request_id').notNull(),
  /** The body that was answered, byte for byte. */
  response: jsonText('response').notNull(),
  /** Every product that fitted, shown or not, as db/quotes/fitted-products.ts writes it. */
  fitted: jsonText('fitted').notNull(),
});
