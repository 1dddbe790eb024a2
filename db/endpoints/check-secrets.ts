import { asc, gt } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { KeyRingError, type KeyRing } from './key-ring';
import { webhookSecrets } from '../schema';

/** Per statement. */
const BATCH = 1_000;

interface SecretsChecked {
  /** All there are, those of removed endpoints too. */
  readonly found: number;
  /** How many are sealed with which key. */
  readonly byKey: Readonly<Record<string, number>>;
  /** Those that the key ring does not open, and why. The reason holds no secret. */
  readonly unreadable: readonly { readonly secretId: string; readonly reason: string }[];
}

/** Opens every webhook secret: whether a key ring fits a database, after a restore for one. Changes nothing. */
export async function checkSecrets(db: DbOrTransaction, keyRing: KeyRing): Promise<SecretsChecked> {
  const byKey: Record<string, number> = {};
  const unreadable: { secretId: string; reason: string }[] = [];
  let [found, after] = [0, ''];
  for (;;) {
    const rows = await db
      .select()
      .from(webhookSecrets)
      .where(gt(webhookSecrets.secretId, after))
      .orderBy(asc(webhookSecrets.secretId))
      .limit(BATCH);
    for (const row of rows) {
      byKey[row.keyId] = (byKey[row.keyId] ?? 0) + 1;
      try {
        keyRing.open(row, row);
      } catch (error) {
        if (!(error instanceof KeyRingError)) throw error;
        unreadable.push({ secretId: row.secretId, reason: error.message });
      }
    }
    found += rows.length;
    const last = rows.at(-1);
    if (last === undefined) return { found, byKey, unreadable };
    after = last.secretId;
  }
}
