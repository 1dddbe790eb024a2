import type { DbOrTransaction } from '../postgres/connect';
import { KeyRingError, type KeyRing } from './key-ring';
import { readSealed, SEALED_TABLES } from './sealed-rows';

/** Per statement. */
const BATCH = 1_000;

/** A secret or private key that the key ring does not open, and why. The reason holds no secret. */
export interface Unreadable {
  readonly id: string;
  readonly reason: string;
}

interface SecretsChecked {
  /** All there are, those of removed endpoints too. */
  readonly found: number;
  /** How many are sealed with which key. */
  readonly byKey: Readonly<Record<string, number>>;
  readonly unreadable: readonly Unreadable[];
}

/** Opens every webhook secret and private key: whether a key ring fits a database, after a restore for one. Changes nothing. */
export async function checkSecrets(db: DbOrTransaction, keyRing: KeyRing): Promise<SecretsChecked> {
  const byKey: Record<string, number> = {};
  const unreadable: Unreadable[] = [];
  let found = 0;
  for (const table of SEALED_TABLES) {
    for (let after: string | undefined = ''; after !== undefined;) {
      const rows = await readSealed(db, table, { after, limit: BATCH });
      for (const row of rows) {
        byKey[row.keyId] = (byKey[row.keyId] ?? 0) + 1;
        try {
          keyRing.open(row, row.place);
        } catch (error) {
          if (!(error instanceof KeyRingError)) throw error;
          unreadable.push({ id: row.id, reason: error.message });
        }
      }
      found += rows.length;
      after = rows.at(-1)?.id;
    }
  }
  return { found, byKey, unreadable };
}
