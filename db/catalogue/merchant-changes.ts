import { inArray, sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { merchantPartners, merchants, partners } from '../schema';
import type { MerchantFields } from './merchants';

/** Keeps a statement well below Postgres' 65,534 parameters. */
const ROWS_PER_STATEMENT = 1_000;

/** Writes merchants, new or changed, and replaces their lists of partners. Call it in a transaction. */
export async function saveMerchants(tx: DbOrTransaction, wanted: readonly MerchantFields[]): Promise<void> {
  for (let from = 0; from < wanted.length; from += ROWS_PER_STATEMENT) {
    const part = wanted.slice(from, from + ROWS_PER_STATEMENT);
    await tx
      .insert(merchants)
      .values(part.map(toColumns))
      .onConflictDoUpdate({
        target: merchants.merchantId,
        set: {
          tradingName: sql`excluded.trading_name`,
          fcaAuthorised: sql`excluded.fca_authorised`,
          showProducts: sql`excluded.show_products`,
          summaryStyle: sql`excluded.summary_style`,
          depositFloorBasisPoints: sql`excluded.deposit_floor_basis_points`,
          depositFloorFixedPence: sql`excluded.deposit_floor_fixed_pence`,
          partnerAccess: sql`excluded.partner_access`,
          updatedAt: sql`service_now()`,
        },
      });
    const ids = part.map((merchant) => merchant.merchantId);
    await tx.delete(merchantPartners).where(inArray(merchantPartners.merchantId, ids));
    const members = part.flatMap(({ merchantId, partnerIds }) =>
      partnerIds.map((partnerId) => ({ merchantId, partnerId })),
    );
    for (let at = 0; at < members.length; at += ROWS_PER_STATEMENT) {
      await tx.insert(merchantPartners).values(members.slice(at, at + ROWS_PER_STATEMENT));
    }
  }
}

/** Which of these partners exist. */
export async function existingPartnerIds(
  db: DbOrTransaction,
  partnerIds: readonly string[],
): Promise<Set<string>> {
  if (partnerIds.length === 0) return new Set();
  const rows = await db
    .select({ partnerId: partners.partnerId })
    .from(partners)
    // One array parameter, however many ids.
    .where(sql`${partners.partnerId} = any(${sql.param([...partnerIds])}::text[])`);
  return new Set(rows.map((row) => row.partnerId));
}

function toColumns(merchant: MerchantFields): typeof merchants.$inferInsert {
  const { depositFloor, partnerIds: _, ...rest } = merchant;
  return {
    ...rest,
    depositFloorBasisPoints: depositFloor?.basisPoints ?? null,
    depositFloorFixedPence: depositFloor?.fixedPence ?? null,
  };
}
