import type { Merchant } from '../../domain/merchant';

/** A merchant as quotes see it: complete, or what is missing. */
export interface CatalogueMerchant {
  readonly merchantId: string;
  /** Partners it exists for; null: all. */
  readonly onlyFor: ReadonlySet<string> | null;
  readonly setup: { readonly merchant: Merchant } | { readonly missingFields: string[] };
}

/** At once from memory, or from Postgres: most requests need not wait, and waiting costs even when it is over at once. */
export type AtOnceOrLater<T> = T | Promise<T>;
