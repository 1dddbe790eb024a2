import { boolean, date, integer, pgTable, primaryKey, text, unique } from 'drizzle-orm/pg-core';
import { PRODUCT_CHOICES } from '../../domain/product';
import { lenders } from './applications';
import { moment, pence, serviceNow } from './columns';
import { merchants } from './merchants';

/** A merchant's credit products; what they cost stands in product_versions. */
export const products = pgTable(
  'products',
  {
    /** `prd_` and a ULID. */
    productId: text('product_id').primaryKey(),
    merchantId: text('merchant_id')
      .notNull()
      .references(() => merchants.merchantId),
    creditProduct: text('credit_product').notNull(),
    active: boolean('active').notNull().default(true),
    /** The version that quotes are priced with. */
    currentVersion: integer('current_version').notNull().default(1),
    displayOrder: integer('display_order').notNull().default(0),
    createdAt: moment('created_at').notNull().default(serviceNow),
  },
  // Also serves loading one merchant's products.
  (t) => [unique('products_merchant_credit_product').on(t.merchantId, t.creditProduct)],
);

/** Terms of a product, never changed once written: quotes name the version they were priced with. */
export const productVersions = pgTable(
  'product_versions',
  {
    productId: text('product_id')
      .notNull()
      .references(() => products.productId),
    version: integer('version').notNull(),
    /** Whose product it is: only this lender's integrations open applications for it. */
    lender: text('lender')
      .notNull()
      .references(() => lenders.lender),
    /** The lender's name when the version was made: what quotes show. */
    lenderName: text('lender_name').notNull(),
    numberOfRepayments: integer('number_of_repayments').notNull(),
    aprBasisPoints: integer('apr_basis_points').notNull(),
    rateType: text('rate_type', { enum: PRODUCT_CHOICES.rateType }).notNull(),
    rateBasis: text('rate_basis', { enum: PRODUCT_CHOICES.rateBasis }).notNull(),
    ratePpm: integer('rate_ppm'),
    instalmentRounding: text('instalment_rounding', { enum: PRODUCT_CHOICES.instalmentRounding }).notNull(),
    finalPayment: text('final_payment', { enum: PRODUCT_CHOICES.finalPayment }).notNull(),
    deferralMonths: integer('deferral_months').notNull().default(0),
    firstIntervalDays: integer('first_interval_days'),
    settlementFeePence: pence('settlement_fee_pence').notNull().default(0),
    minLoanPence: pence('min_loan_pence').notNull(),
    maxLoanPence: pence('max_loan_pence').notNull(),
    depositMinBasisPoints: integer('deposit_min_basis_points'),
    depositMinFixedPence: pence('deposit_min_fixed_pence'),
    depositMaxBasisPoints: integer('deposit_max_basis_points'),
    depositMaxFixedPence: pence('deposit_max_fixed_pence'),
    firstPaymentType: text('first_payment_type', {
      enum: PRODUCT_CHOICES.firstPaymentType,
    }).notNull(),
    annualRateShown: text('annual_rate_shown', { enum: PRODUCT_CHOICES.annualRateShown }).notNull(),
    validFrom: date('valid_from', { mode: 'string' }),
    validTo: date('valid_to', { mode: 'string' }),
    createdAt: moment('created_at').notNull().default(serviceNow),
  },
  (t) => [primaryKey({ columns: [t.productId, t.version] })],
);
