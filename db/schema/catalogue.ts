import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, pgTable, primaryKey, text, unique } from 'drizzle-orm/pg-core';
import { PRODUCT_CHOICES } from '../../domain/product';
import { choice, day, moment, pence, serviceNow } from './columns';
import { ofLender, ofPartner } from './parties';

/** Merchants. Nullable columns are set-up that may still be missing (docs/operations/every-day.md). */
export const merchants = pgTable(
  'merchants',
  {
    merchantId: text('merchant_id').primaryKey(),
    tradingName: text('trading_name'),
    /** Whether it may communicate regulated credit promotions (FCA); null: not recorded yet. */
    fcaAuthorised: boolean('fca_authorised'),
    showProducts: boolean('show_products').notNull().default(true),
    /** Null: not stated; an offer where the list is shown, else the headline. */
    summaryStyle: text('summary_style', { enum: ['offer', 'headline'] }),
    /** Merchant-wide minimum deposit; both null: no floor. */
    depositFloorBasisPoints: integer('deposit_floor_basis_points'),
    depositFloorFixedPence: pence('deposit_floor_fixed_pence'),
    /** `restricted`: only the partners in merchant_partners may quote for it. */
    partnerAccess: choice('partner_access', ['all', 'restricted']).default('all'),
    createdAt: moment('created_at').notNull().default(serviceNow),
    updatedAt: moment('updated_at').notNull().default(serviceNow),
  },
  (t) => [
    check('merchants_id_form', sql`${t.merchantId} ~ '^(M[0-9]{6,7}|[A-Z]{2}(-[A-Z0-9]{4}){3})$'`),
    check('merchants_summary_style', sql`${t.summaryStyle} in ('offer', 'headline')`),
    check('merchants_partner_access', sql`${t.partnerAccess} in ('all', 'restricted')`),
  ],
);

export const merchantPartners = pgTable(
  'merchant_partners',
  {
    merchantId: text('merchant_id')
      .notNull()
      .references(() => merchants.merchantId, { onDelete: 'cascade' }),
    partnerId: ofPartner(),
  },
  (t) => [
    primaryKey({ columns: [t.merchantId, t.partnerId] }),
    // `ops merchants list --partner`.
    index('merchant_partners_partner').on(t.partnerId),
  ],
);

export const products = pgTable(
  'products',
  {
    productId: text('product_id').primaryKey(),
    merchantId: text('merchant_id')
      .notNull()
      .references(() => merchants.merchantId),
    creditProduct: text('credit_product').notNull(),
    active: boolean('active').notNull().default(true),
    currentVersion: integer('current_version').notNull().default(1),
    displayOrder: integer('display_order').notNull().default(0),
    createdAt: moment('created_at').notNull().default(serviceNow),
  },
  // Also serves loading one merchant's products.
  (t) => [unique('products_merchant_credit_product').on(t.merchantId, t.creditProduct)],
);

export const productVersions = pgTable(
  'product_versions',
  {
    productId: text('product_id')
      .notNull()
      .references(() => products.productId),
    version: integer('version').notNull(),
    lender: ofLender(),
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
    firstPaymentType: text('first_payment_type', { enum: PRODUCT_CHOICES.firstPaymentType }).notNull(),
    annualRateShown: text('annual_rate_shown', { enum: PRODUCT_CHOICES.annualRateShown }).notNull(),
    validFrom: day('valid_from'),
    validTo: day('valid_to'),
    createdAt: moment('created_at').notNull().default(serviceNow),
  },
  (t) => [primaryKey({ columns: [t.productId, t.version] })],
);
