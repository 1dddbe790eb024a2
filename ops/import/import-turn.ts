import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../../db/postgres/connect';

/** Imports take turns until the transaction ends: two at once could each decide on what the other changes. */
export async function takeImportTurn(tx: DbOrTransaction): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtext('ops.import'))`);
}
