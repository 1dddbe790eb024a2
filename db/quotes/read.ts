import { and, desc, eq, inArray, lt, sql, type SQL } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { products, productVersions, quotes } from '../schema';
import { decodeFitted, type FittedProduct } from './fitted-products';
import { toDefinition, type ProductDefinition } from '../catalogue/product-row';

/** A quote without its bodies. */
export interface QuoteSummary {
  readonly quoteId: string;
  readonly createdAt: Date;
  readonly partnerId: string;
  readonly keyId: string;
  readonly environment: 'sandbox' | 'live';
  readonly merchantId: string;
  /** As requested. */
  readonly loanPence: number;
  /** As requested; null when none was sent. */
  readonly depositPence: number | null;
  readonly merchantFinanceUrl: string;
  readonly merchantReference: string | null;
  readonly requestId: string;
}

/** Terms that a quote was priced with. */
export interface QuotedVersion {
  readonly productId: string;
  readonly version: number;
  readonly definition: ProductDefinition;
}

/** A quote as answered, with what stood behind it. */
export interface StoredQuote extends QuoteSummary {
  /** The body that was answered. */
  readonly response: unknown;
  /** Every product that fitted, shown or not, as stored. */
  readonly fitted: readonly FittedProduct[];
  /** The versions that `fitted` names, in its order. */
  readonly versions: readonly QuotedVersion[];
}

const SUMMARY = {
  quoteId: quotes.quoteId,
  createdAt: quotes.createdAt,
  partnerId: quotes.partnerId,
  keyId: quotes.keyId,
  environment: quotes.environment,
  merchantId: quotes.merchantId,
  loanPence: quotes.loanPence,
  depositPence: quotes.depositPence,
  merchantFinanceUrl: quotes.merchantFinanceUrl,
  merchantReference: quotes.merchantReference,
  requestId: quotes.requestId,
};

/** Reads one quote; null when there is none, or its month has been dropped. */
export async function findQuote(db: DbOrTransaction, quoteId: string): Promise<StoredQuote | null> {
  const [row] = await db
    .select({ ...SUMMARY, response: quotes.response, fitted: quotes.fitted })
    .from(quotes)
    .where(eq(quotes.quoteId, quoteId));
  if (row === undefined) return null;
  const fitted = decodeFitted(row.fitted);
  return { ...row, fitted, versions: await loadVersions(db, fitted) };
}

/**
 * Recent quotes, newest first. Quotes have no index but their id, which sorts by time: the span bounds what is read, and
 * the limit ends it early.
 */
export async function listQuotes(
  db: DbOrTransaction,
  filter: {
    partnerId?: string | undefined;
    merchantId?: string | undefined;
    merchantReference?: string | undefined;
    days: number;
    /** Only those older than this one: the next page. */
    after?: string | undefined;
    limit: number;
  },
): Promise<QuoteSummary[]> {
  const oldest = sql`'qte_' || ulid_floor(service_now() - make_interval(days => ${filter.days}::int))`;
  const conditions: SQL[] = [sql`${quotes.quoteId} >= (select ${oldest})`];
  if (filter.partnerId !== undefined) conditions.push(eq(quotes.partnerId, filter.partnerId));
  if (filter.merchantId !== undefined) conditions.push(eq(quotes.merchantId, filter.merchantId));
  if (filter.merchantReference !== undefined)
    conditions.push(eq(quotes.merchantReference, filter.merchantReference));
  if (filter.after !== undefined) conditions.push(lt(quotes.quoteId, filter.after));
  return db
    .select(SUMMARY)
    .from(quotes)
    .where(and(...conditions))
    .orderBy(desc(quotes.quoteId))
    .limit(filter.limit);
}

async function loadVersions(db: DbOrTransaction, named: readonly FittedProduct[]): Promise<QuotedVersion[]> {
  if (named.length === 0) return [];
  const rows = await db
    .select({ creditProduct: products.creditProduct, columns: productVersions })
    .from(productVersions)
    .innerJoin(products, eq(products.productId, productVersions.productId))
    .where(
      inArray(
        productVersions.productId,
        named.map((one) => one.productId),
      ),
    );
  return named.flatMap(({ productId, version }) => {
    const row = rows.find(({ columns }) => columns.productId === productId && columns.version === version);
    if (row === undefined) return [];
    const { productId: _, version: __, createdAt: ___, ...terms } = row.columns;
    return [{ productId, version, definition: toDefinition(row.creditProduct, terms) }];
  });
}
