import { and, desc, eq, getTableColumns, lt, sql } from 'drizzle-orm';
import type { Tenant } from '../../domain/tenant';
import type { MonthOf } from '../notifications/quota';
import { runPrepared, type DbOrTransaction, type Reader } from '../postgres/connect';
import { quotes } from '../schema';
import { given, idWithin, type Within } from '../schema/columns';
import { loadVersions, type ProductVersion } from '../catalogue/products';
import { decodeFitted, type FittedProduct } from './store';

/** A quote without its bodies. Amounts are as requested; the deposit is null when none was sent. */
export type QuoteSummary = Readonly<Omit<typeof quotes.$inferSelect, 'response' | 'fitted'>>;

export interface StoredQuote extends QuoteSummary {
  readonly response: unknown;
  readonly fitted: readonly FittedProduct[];
  readonly versions: readonly ProductVersion[];
}

const { response: _, fitted: __, ...SUMMARY } = getTableColumns(quotes);

export async function findQuote(db: DbOrTransaction, quoteId: string): Promise<StoredQuote | null> {
  const [row] = await db.select().from(quotes).where(eq(quotes.quoteId, quoteId));
  if (row === undefined) return null;
  const fitted = decodeFitted(row.fitted);
  const ids = fitted.map(({ productId }) => productId);
  const all = new Map((await loadVersions(db, ids)).map((one) => [`${one.productId} ${one.version}`, one]));
  const versions = fitted.flatMap((one) => all.get(`${one.productId} ${one.version}`) ?? []);
  return { ...row, fitted, versions };
}

/** Recent quotes, newest first. The span bounds the rows that are read, as ids sort by time. */
export async function listQuotes(
  db: DbOrTransaction,
  filter: Within &
    Partial<Record<'partnerId' | 'merchantId' | 'merchantReference' | 'after', string>> & {
      /** Only those that this product fitted, priced with this version, or with any. */
      product?: { readonly productId: string; readonly version?: number };
      limit: number;
    },
): Promise<QuoteSummary[]> {
  const { product } = filter;
  // As store.ts writes an entry. There is no index of products: the rows of the span are read.
  const entry =
    product && `["${product.productId}",${product.version === undefined ? '' : `${product.version},`}`;
  return db
    .select(SUMMARY)
    .from(quotes)
    .where(
      and(
        idWithin(quotes.quoteId, 'qte_', filter),
        given(quotes.partnerId, filter.partnerId),
        given(quotes.merchantId, filter.merchantId),
        given(quotes.merchantReference, filter.merchantReference),
        given(quotes.fitted, entry, (fitted, value) => sql`strpos(${fitted}, ${value}::text) > 0`),
        given(quotes.quoteId, filter.after, lt),
      ),
    )
    .orderBy(desc(quotes.quoteId))
    .limit(filter.limit);
}

export interface QuoteCount extends Tenant {
  readonly quotes: number;
}

// Reads the whole partition of the month, as the only index is the id.
const COUNT = `
  select partner_id as "partnerId", environment, count(*)::float8 as quotes from quotes
  where quote_id >= (select 'qte_' || ulid_floor($1::date::timestamp at time zone 'UTC'))
    and quote_id < (select 'qte_' || ulid_floor(($1::date + interval '1 month') at time zone 'UTC'))
    and ($2::text is null or partner_id = $2) and ($3::text is null or environment = $3)
  group by 1, 2 order by 1, 2`;

export const countQuotes = (reader: Reader, { month, partnerId, environment }: MonthOf) =>
  runPrepared<QuoteCount>(reader, COUNT, [month, partnerId ?? null, environment ?? null]);
