import type { ApiKeyRecord } from '../../db/keys/api-keys';
import { withTimeout } from '../../timing/timeout';

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
