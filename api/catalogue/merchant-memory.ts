import { LRUCache } from 'lru-cache';
import { withTimeout } from '../../timing/timeout';
import type { StoredMerchant } from '../../db/catalogue/merchants';
import { completeMerchant } from '../../domain/product';

/** A merchant as quotes see it: complete, or what is missing. */
export interface CatalogueMerchant {
  readonly merchantId: string;
  /** Partners it exists for; null: all. */
  readonly onlyFor: ReadonlySet<string> | null;
  readonly setup: ReturnType<typeof completeMerchant>;
}

export interface MerchantMemoryOptions {
  readonly source: { loadMerchant(merchantId: string): Promise<StoredMerchant | null> };
  /** Most merchants held in memory; the least recently used give way. */
  readonly mostMerchants: number;
  /** Longest wait for Postgres per look-up, in milliseconds. */
  readonly readTimeoutMs: number;
}

interface Entry {
  readonly merchant: CatalogueMerchant | undefined;
}

interface Reading {
  readonly entry: Promise<Entry>;
  /** The merchant changed after this reading began: what it finds may be old and is not kept. */
  stale: boolean;
}

/** Merchants with their products, read when first asked for; absent ones are remembered too. */
export class MerchantMemory {
  private readonly entries: LRUCache<string, Entry>;
  private readonly readings = new Map<string, Reading>();

  constructor(private readonly options: MerchantMemoryOptions) {
    this.entries = new LRUCache({ max: options.mostMerchants });
  }

  find(
    merchantId: string,
    trusted: boolean,
  ): CatalogueMerchant | undefined | Promise<CatalogueMerchant | undefined> {
    const known = trusted ? this.entries.get(merchantId) : undefined;
    if (known !== undefined) return known.merchant;
    const underWay = trusted ? this.readings.get(merchantId) : undefined;
    const { entry } = underWay !== undefined && !underWay.stale ? underWay : this.read(merchantId);
    return entry.then(({ merchant }) => merchant);
  }

  forget(merchantId: string): void {
    this.entries.delete(merchantId);
    const reading = this.readings.get(merchantId);
    if (reading) reading.stale = true;
  }

  clear(): void {
    this.entries.clear();
    for (const reading of this.readings.values()) reading.stale = true;
  }

  private read(merchantId: string): Reading {
    const { source, readTimeoutMs } = this.options;
    const load = withTimeout(source.loadMerchant(merchantId), readTimeoutMs, 'merchant');
    const reading: Reading = {
      stale: false,
      entry: load.then((stored) => ({ merchant: stored === null ? undefined : catalogueMerchant(stored) })),
    };
    this.readings.set(merchantId, reading);
    const finish = (entry?: Entry) => {
      if (this.readings.get(merchantId) !== reading) return;
      this.readings.delete(merchantId);
      if (entry !== undefined && !reading.stale) this.entries.set(merchantId, entry);
    };
    reading.entry.then(finish, () => finish());
    return reading;
  }
}

function catalogueMerchant(stored: StoredMerchant): CatalogueMerchant {
  return {
    merchantId: stored.setup.merchantId,
    onlyFor: stored.partnerAccess === 'all' ? null : new Set(stored.partnerIds),
    setup: completeMerchant(stored.setup),
  };
}
