import { boolean, check, index, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { sql } from 'drizzle-orm';
import { moment, pence, serviceNow } from './columns';
import { partners } from './partners';

/** Merchants: who sells the goods. Nullable columns are set-up that may still be missing (docs/operations/every-day.md, "Merchants and products"). */
export const merchants = pgTable(
  'merchants',
  {
    merchantId: text('merchant_id').primaryKey(),
    tradingName: text('trading_name'),
    /** May communicate regulated credit promotions (FCA); null: not recorded yet. */
    fcaAuthorised: boolean('fca_authorised'),
    /** False: summary without the product list. */
    showProducts: boolean('show_products').notNull().default(true),
    summaryStyle: text('summary_style', { enum: ['offer', 'headline'] })
      .notNull()
      .default('offer'),
    /** Merchant-wide minimum deposit; both null: no floor. */
    depositFloorBasisPoints: integer('deposit_floor_basis_points'),
    depositFloorFixedPence: pence('deposit_floor_fixed_pence'),
    /** `restricted`: only the partners in merchant_partners may quote for it. */
    partnerAccess: text('partner_access', { enum: ['all', 'restricted'] })
      .notNull()
      .default('all'),
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
    partnerId: text('partner_id')
      .notNull()
      .references(() => partners.partnerId),
  },
  (t) => [
    primaryKey({ columns: [t.merchantId, t.partnerId] }),
    // `ops merchants list --partner`.
    index('merchant_partners_partner').on(t.partnerId),
  ],
);
