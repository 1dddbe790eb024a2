import { LRUCache } from 'lru-cache';
import { loadMerchant, type StoredMerchant } from '../db/catalogue/merchants';
import { writeKeyUses, findKeyByHash, loadAllKeys, loadKeysOfPartner, type ApiKeyRecord } from '../db/keys';
import { ATTEMPTS_CHANNEL } from '../db/notifications/notification';
import { CATALOGUE_CHANNEL, openChangeFeed } from '../db/postgres/change-feed';
import type { Sql } from '../db/postgres/connect';
import { completeMerchant } from '../domain/product';
import { withTimeout } from '../timing/timing';

/** Most merchants in memory, far above the number there is. The least recently used are dropped. */
const MOST_MERCHANTS = 20_000;

/**
 * Keys and merchants, from memory while that is fresh, else from Postgres. Memory answers without a
 * promise.
 */
export interface Catalogue {
  /**
   * The key with this SHA-256 (hex), whatever its state.
   * @throws when Postgres is needed and does not answer.
   */
  findKey(hash: string): ApiKeyRecord | undefined | Promise<ApiKeyRecord | undefined>;
  /** @throws when Postgres is needed and does not answer. */
  findMerchant(merchantId: string): CatalogueMerchant | undefined | Promise<CatalogueMerchant | undefined>;
}

interface CatalogueOptions {
  readonly sql: Sql;
  readonly listenUrl: string;
  readonly readTimeoutMs: number;
  /** Gets the messages about attempts, which use the same connection. */
  readonly attempts: { onMessage(payload: string): void; lookAgain(): void };
  readonly onError: (error: unknown) => void;
}

export function openCatalogue(options: CatalogueOptions) {
  const { listenUrl, attempts, onError } = options;
  const keys = new KeyMemory(options);
  const merchants = new MerchantMemory(options);
  const feed = openChangeFeed({
    database: { url: listenUrl, applicationName: 'pfqs api' },
    channels: [CATALOGUE_CHANNEL, ATTEMPTS_CHANNEL],
    onConnect: async () => {
      merchants.clear();
      await keys.loadAll();
      attempts.lookAgain();
    },
    onChange: (subject, channel) => {
      if (channel === ATTEMPTS_CHANNEL) return attempts.onMessage(subject);
      const id = subject.slice(subject.indexOf(':') + 1);
      if (subject.startsWith('partner:')) keys.reloadPartner(id);
      else if (subject.startsWith('merchant:')) merchants.forget(id);
    },
    onError,
    monotonicMs: () => performance.now(),
  });
  return {
    findKey: (hash: string) => keys.find(hash, feed.trusted()),
    findMerchant: (merchantId: string) => merchants.find(merchantId, feed.trusted()),
    trusted: () => feed.trusted(),
    close: () => feed.close(),
  };
}

// All keys by hash, so that an unknown key costs no query. While some are being read again, a missing
// key is looked up in Postgres.
class KeyMemory {
  private byHash = new Map<string, ApiKeyRecord>();
  /** Partners whose keys are being read again, with the reading that counts. */
  private readonly reading = new Map<string, symbol>();
  /** Partners that changed while all keys are being read, when memory is not used; else undefined. */
  private changedWhileLoading: Set<string> | undefined = new Set();

  constructor(private readonly options: Pick<CatalogueOptions, 'sql' | 'readTimeoutMs' | 'onError'>) {}

  find(hash: string, trusted: boolean): ReturnType<Catalogue['findKey']> {
    if (trusted && this.changedWhileLoading === undefined) {
      const known = this.byHash.get(hash);
      if (known !== undefined || this.reading.size === 0) return known;
    }
    return this.read(hash);
  }

  private async read(hash: string): Promise<ApiKeyRecord | undefined> {
    const { sql, readTimeoutMs } = this.options;
    const found = findKeyByHash(sql, Buffer.from(hash, 'hex'));
    return (await withTimeout(found, readTimeoutMs, 'API key')) ?? undefined;
  }

  async loadAll(): Promise<void> {
    const changed = new Set<string>();
    this.changedWhileLoading = changed;
    this.reading.clear();
    const records = await loadAllKeys(this.options.sql);
    // A newer connection of the change feed has begun a reading of its own.
    if (this.changedWhileLoading !== changed) return;
    this.byHash = new Map(records.map((record) => [hex(record), record]));
    this.changedWhileLoading = undefined;
    for (const partnerId of changed) this.reloadPartner(partnerId);
  }

  /** Forgets a partner's keys at once and reads them again. */
  reloadPartner(partnerId: string): void {
    if (this.changedWhileLoading !== undefined) {
      this.changedWhileLoading.add(partnerId);
      return;
    }
    for (const [hash, record] of this.byHash) if (record.partnerId === partnerId) this.byHash.delete(hash);
    const reading = Symbol(partnerId);
    this.reading.set(partnerId, reading);
    loadKeysOfPartner(this.options.sql, partnerId).then(
      (records) => {
        // A later change has started a reading that counts instead.
        if (this.reading.get(partnerId) !== reading) return;
        for (const record of records) this.byHash.set(hex(record), record);
        this.reading.delete(partnerId);
      },
      (error: unknown) => {
        // The partner stays in `reading`: its keys are looked up in Postgres until then.
        this.options.onError(error);
        const again = () => this.reading.get(partnerId) === reading && this.reloadPartner(partnerId);
        setTimeout(again, 500).unref();
      },
    );
  }
}

const hex = (record: ApiKeyRecord) => record.keyHash.toString('hex');

export interface CatalogueMerchant {
  readonly merchantId: string;
  /** Partners it exists for; null: all. */
  readonly onlyFor: ReadonlySet<string> | null;
  readonly setup: ReturnType<typeof completeMerchant>;
}

interface Entry {
  readonly merchant: CatalogueMerchant | undefined;
}

/** Merchants with their products, read when first asked for. A missing merchant is remembered too. */
class MerchantMemory {
  private readonly entries = new LRUCache<string, Entry>({ max: MOST_MERCHANTS });
  /** Readings under way of merchants that have not changed since they began. Only their results are kept. */
  private readonly readings = new Map<string, Promise<Entry>>();

  constructor(private readonly options: Pick<CatalogueOptions, 'sql' | 'readTimeoutMs'>) {}

  find(merchantId: string, trusted: boolean): ReturnType<Catalogue['findMerchant']> {
    const known = trusted ? this.entries.get(merchantId) : undefined;
    if (known !== undefined) return known.merchant;
    const underWay = trusted ? this.readings.get(merchantId) : undefined;
    return (underWay ?? this.read(merchantId)).then(({ merchant }) => merchant);
  }

  forget(merchantId: string): void {
    this.entries.delete(merchantId);
    this.readings.delete(merchantId);
  }

  clear(): void {
    this.entries.clear();
    this.readings.clear();
  }

  private read(merchantId: string): Promise<Entry> {
    const { sql, readTimeoutMs } = this.options;
    const load = withTimeout(loadMerchant(sql, merchantId), readTimeoutMs, 'merchant');
    const reading = load.then((stored) => ({
      merchant: stored === null ? undefined : catalogueMerchant(stored),
    }));
    this.readings.set(merchantId, reading);
    const finish = (entry?: Entry) => {
      if (this.readings.get(merchantId) !== reading) return;
      this.readings.delete(merchantId);
      if (entry !== undefined) this.entries.set(merchantId, entry);
    };
    reading.then(finish, () => finish());
    return reading;
  }
}

const catalogueMerchant = (stored: StoredMerchant): CatalogueMerchant => ({
  merchantId: stored.setup.merchantId,
  onlyFor: stored.partnerAccess === 'all' ? null : new Set(stored.partnerIds),
  setup: completeMerchant(stored.setup),
});

const HOUR_MS = 3_600_000;

/** Notes in memory which keys were accepted, and writes each once an hour, so that no call waits for it. */
export function createKeyUses(sql: Sql, now: () => number = Date.now) {
  const hourNow = () => Math.floor(now() / HOUR_MS);
  let written = { hour: hourNow(), keys: new Set<string>() };
  const pending = new Set<string>();
  return {
    used: (keyId: string): void => {
      if (written.hour !== hourNow()) written = { hour: hourNow(), keys: new Set() };
      if (!written.keys.has(keyId)) pending.add(keyId);
    },
    /** Writes the keys that were not written in this hour. After a failure the next call writes them. */
    write: async (): Promise<void> => {
      if (pending.size === 0) return;
      const { hour, keys } = written;
      const ids = [...pending];
      await writeKeyUses(sql, ids, hour * HOUR_MS);
      for (const id of ids) {
        keys.add(id);
        pending.delete(id);
      }
    },
  };
}
