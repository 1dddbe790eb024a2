import { LRUCache } from 'lru-cache';
import type { StoredMerchant } from '../db/catalogue/merchants';
import type { ApiKeyRecord } from '../db/keys/api-keys';
import { withTimeout } from '../timing/timeout';
import { completeMerchant } from '../domain/product';

/**
 * Keys, partners, merchants and products, from memory while memory is known to be fresh, else from Postgres. What memory
 * knows is there at once: waiting costs even when it is over at once.
 */
export interface Catalogue {
  /** The key with this SHA-256 (hex), whatever its state. @throws when Postgres is needed and does not answer. */
  findKey(hash: string): ApiKeyRecord | undefined | Promise<ApiKeyRecord | undefined>;
  /** @throws when Postgres is needed and does not answer. */
  findMerchant(merchantId: string): CatalogueMerchant | undefined | Promise<CatalogueMerchant | undefined>;
}

interface CatalogueOptions extends KeyMemoryOptions, MerchantMemoryOptions {
  readonly source: KeyMemoryOptions['source'] & MerchantMemoryOptions['source'];
}

/** A catalogue whose memory a change feed keeps fresh: hand it `onConnect` and `onChange`, and the feed's verdict. */
interface CatalogueMemory extends Catalogue {
  readonly onConnect: () => Promise<void>;
  readonly onChange: (subject: string) => void;
  /** Says how memory is known to be fresh; until this is called it is not trusted. */
  trustWhen(trusted: () => boolean): void;
}

export function createCatalogue(options: CatalogueOptions): CatalogueMemory {
  let trusted: () => boolean = () => false;
  const keys = new KeyMemory(options);
  const merchants = new MerchantMemory(options);
  return {
    findKey: (hash) => keys.find(hash, trusted()),
    findMerchant: (merchantId) => merchants.find(merchantId, trusted()),
    async onConnect() {
      merchants.clear();
      await keys.loadAll();
    },
    onChange(subject) {
      const colon = subject.indexOf(':');
      const id = subject.slice(colon + 1);
      if (subject.startsWith('partner:')) keys.reloadPartner(id);
      else if (subject.startsWith('merchant:')) merchants.forget(id);
    },
    trustWhen(verdict) {
      trusted = verdict;
    },
  };
}

export interface KeyMemoryOptions {
  readonly source: {
    loadAllKeys(): Promise<ApiKeyRecord[]>;
    loadKeysOfPartner(partnerId: string): Promise<ApiKeyRecord[]>;
    findKeyByHash(hash: Buffer): Promise<ApiKeyRecord | null>;
  };
  /** Longest wait for Postgres per look-up, in milliseconds. */
  readonly readTimeoutMs: number;
  readonly onError: (error: unknown) => void;
}

/**
 * All keys, by hash. Held whole, so that an unknown key costs no query. While a part of it is being read again, what
 * is not found in memory is looked for in Postgres.
 */
export class KeyMemory {
  private byHash = new Map<string, ApiKeyRecord>();
  /** Partners whose keys are being read again, with the reading that counts. */
  private readonly reading = new Map<string, symbol>();
  /** Set while all keys are being read, and before they first have been: memory answers nothing then. */
  private changedWhileLoading: Set<string> | undefined = new Set();

  constructor(private readonly options: KeyMemoryOptions) {}

  find(hash: string, trusted: boolean): ApiKeyRecord | undefined | Promise<ApiKeyRecord | undefined> {
    if (trusted && this.changedWhileLoading === undefined) {
      const known = this.byHash.get(hash);
      if (known !== undefined || this.reading.size === 0) return known;
    }
    return this.read(hash);
  }

  private async read(hash: string): Promise<ApiKeyRecord | undefined> {
    const { source, readTimeoutMs } = this.options;
    const found = source.findKeyByHash(Buffer.from(hash, 'hex'));
    return (await withTimeout(found, readTimeoutMs, 'API key')) ?? undefined;
  }

  async loadAll(): Promise<void> {
    const changed = new Set<string>();
    this.changedWhileLoading = changed;
    this.reading.clear();
    const records = await this.options.source.loadAllKeys();
    // A newer connection of the change feed has begun its own reading.
    if (this.changedWhileLoading !== changed) return;
    this.byHash = new Map(records.map((record) => [hex(record), record]));
    this.changedWhileLoading = undefined;
    for (const partnerId of changed) this.reloadPartner(partnerId);
  }

  /** Forgets a partner's keys at once and reads them anew. */
  reloadPartner(partnerId: string): void {
    if (this.changedWhileLoading !== undefined) {
      this.changedWhileLoading.add(partnerId);
      return;
    }
    for (const [hash, record] of this.byHash) if (record.partnerId === partnerId) this.byHash.delete(hash);
    const reading = Symbol(partnerId);
    this.reading.set(partnerId, reading);
    this.options.source.loadKeysOfPartner(partnerId).then(
      (records) => {
        // A later change started a later reading, and that one counts.
        if (this.reading.get(partnerId) !== reading) return;
        for (const record of records) this.byHash.set(hex(record), record);
        this.reading.delete(partnerId);
      },
      (error: unknown) => {
        // The partner stays in `reading`: its keys are looked up in Postgres until a later reading succeeds.
        this.options.onError(error);
        setTimeout(
          () => this.reading.get(partnerId) === reading && this.reloadPartner(partnerId),
          500,
        ).unref();
      },
    );
  }
}

function hex(record: ApiKeyRecord): string {
  return record.keyHash.toString('hex');
}

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
