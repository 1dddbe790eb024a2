import type { Db, DbOrTransaction } from '../postgres/connect';
import { runPrepared } from '../postgres/prepared';
import type { Unreadable } from './check-secrets';
import { KeyRingError, type KeyRing } from './key-ring';
import { readSealed, SEALED_TABLES, type SealedRow, type SealedTable } from './sealed-rows';

/** Per transaction: short enough to hold up no rotation. */
const BATCH = 100;

export interface ResealReport {
  /** Secrets and private keys under another than the current key, before. */
  readonly found: number;
  /** Sealed anew under the current key; with a dry run those that could be. */
  readonly resealed: number;
  readonly unreadable: readonly Unreadable[];
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
 * Seals every webhook secret and private key that is not under the current key anew, in batches; those of removed endpoints too, so
 * that an old key can be given up. What cannot be opened stays as it is. An interrupted run is taken up by the next one.
 */
export async function resealSecrets(db: Db, options: ResealOptions): Promise<ResealReport> {
  const { currentKeyId } = options.keyRing;
  let found = 0;
  for (const table of SEALED_TABLES) found += await countStale(db, table, currentKeyId);
  const unreadable: Unreadable[] = [];
  let resealed = 0;
  for (const table of SEALED_TABLES) {
    for (let after: string | undefined = ''; after !== undefined;) {
      const batch = await resealBatch(db, table, after, options);
      unreadable.push(...batch.unreadable);
      resealed += batch.changed;
      after = batch.last;
      if (after !== undefined) options.onProgress(resealed + unreadable.length, found);
    }
  }
  return { found, resealed, unreadable };
}

async function countStale(db: Db, { name }: SealedTable, currentKeyId: string): Promise<number> {
  const text = `select count(*)::int as count from ${name} where key_id <> $1`;
  const [row] = await runPrepared<{ count: number }>(db, text, [currentKeyId]);
  return row?.count ?? 0;
}

async function resealBatch(db: Db, table: SealedTable, after: string, options: ResealOptions) {
  const { keyRing, dryRun, record } = options;
  const wanted = { after, limit: BATCH, otherThan: keyRing.currentKeyId };
  return db.transaction(async (tx) => {
    const rows = await readSealed(tx, table, wanted);
    const unreadable: Unreadable[] = [];
    let changed = 0;
    for (const row of rows) {
      const sealed = reseal(keyRing, row);
      if ('reason' in sealed) {
        unreadable.push({ id: row.id, reason: sealed.reason });
        continue;
      }
      changed += 1;
      if (dryRun) continue;
      const text = `update ${table.name} set key_id = $2, ciphertext = $3::bytea where ${table.id} = $1`;
      await runPrepared(tx, text, [row.id, sealed.keyId, Buffer.from(sealed.ciphertext)]);
    }
    if (changed > 0 && !dryRun) await record(tx, changed);
    return { changed, unreadable, last: rows.at(-1)?.id };
  });
}

function reseal(keyRing: KeyRing, row: SealedRow) {
  try {
    return keyRing.seal(keyRing.open(row, row.place), row.place);
  } catch (error) {
    if (error instanceof KeyRingError) return { reason: error.message };
    throw error;
  }
}
