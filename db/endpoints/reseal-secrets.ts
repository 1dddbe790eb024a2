import { and, asc, count, eq, gt, ne } from 'drizzle-orm';
import type { Db, DbOrTransaction } from '../postgres/connect';
import type { SealedSecret } from './endpoints';
import { KeyRingError, type KeyRing } from './key-ring';
import { webhookSecrets } from '../schema';

/** Per transaction: short enough to hold up no rotation. */
const BATCH = 100;

export interface ResealReport {
  /** Secrets under another than the current key, before. */
  readonly found: number;
  /** Sealed anew under the current key; with a dry run those that could be. */
  readonly resealed: number;
  /** Those that cannot be opened, and why. The reason holds no secret. */
  readonly unreadable: readonly { readonly secretId: string; readonly reason: string }[];
}

interface ResealOptions {
  readonly keyRing: KeyRing;
  /** Opens everything, changes nothing. */
  readonly dryRun: boolean;
  /** In the transaction of each batch that changed something. */
  readonly record: (tx: DbOrTransaction, resealed: number) => Promise<void>;
  readonly onProgress: (done: number, found: number) => void;
}

/**
 * Seals every secret that is not under the current key anew, in batches; those of removed endpoints too, so that an old
 * key can be given up. What cannot be opened stays as it is. An interrupted run is taken up by the next one.
 */
export async function resealSecrets(db: Db, options: ResealOptions): Promise<ResealReport> {
  const { keyRing, dryRun } = options;
  const stale = ne(webhookSecrets.keyId, keyRing.currentKeyId);
  const [counted] = await db.select({ found: count() }).from(webhookSecrets).where(stale);
  const found = counted?.found ?? 0;
  const unreadable: { secretId: string; reason: string }[] = [];
  let [after, resealed] = ['', 0];
  for (;;) {
    const batch = await db.transaction(async (tx) => {
      const rows = await tx
        .select()
        .from(webhookSecrets)
        .where(and(stale, gt(webhookSecrets.secretId, after)))
        .orderBy(asc(webhookSecrets.secretId))
        .limit(BATCH)
        .for('update');
      let changed = 0;
      for (const row of rows) {
        const sealed = reseal(keyRing, row);
        if ('reason' in sealed) {
          unreadable.push({ secretId: row.secretId, reason: sealed.reason });
          continue;
        }
        changed += 1;
        if (dryRun) continue;
        await tx
          .update(webhookSecrets)
          .set({ keyId: sealed.keyId, ciphertext: Buffer.from(sealed.ciphertext) })
          .where(eq(webhookSecrets.secretId, row.secretId));
      }
      if (changed > 0 && !dryRun) await options.record(tx, changed);
      return { changed, last: rows.at(-1)?.secretId };
    });
    if (batch.last === undefined) return { found, resealed, unreadable };
    after = batch.last;
    resealed += batch.changed;
    options.onProgress(resealed + unreadable.length, found);
  }
}

function reseal(keyRing: KeyRing, row: SealedSecret) {
  try {
    return keyRing.seal(keyRing.open(row, row), row);
  } catch (error) {
    if (error instanceof KeyRingError) return { reason: error.message };
    throw error;
  }
}
