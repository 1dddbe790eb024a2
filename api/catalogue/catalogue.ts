import type { ApiKeyRecord } from '../../db/keys/api-keys';
import { KeyMemory, type KeyMemoryOptions } from './key-memory';
import { MerchantMemory, type CatalogueMerchant, type MerchantMemoryOptions } from './merchant-memory';

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
