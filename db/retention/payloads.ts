import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import type { RemovedByPeriod } from '../../domain/retention';

/** A step of the walk along the ids, and whether there may be more. */
interface PayloadStep {
  readonly cleared: number;
  /** The same by the UTC day of their creation. */
  readonly byDay: RemovedByPeriod;
  /** The last id looked at; the next step goes on after it. */
  readonly cursor: string;
  readonly more: boolean;
}

/** Where the walk begins: everything up to there has been dealt with. Empty at first. */
export async function payloadMark(db: DbOrTransaction): Promise<string> {
  const [row] = await db.execute<{ mark: string }>(
    sql`select done_up_to as mark from retention_marks where kind = 'payloads'`,
  );
  return row?.mark ?? '';
}

/** Empties the bodies, and what was answered to them, of the next notifications that are past their time and have ended (clear_payloads). */
export async function clearPayloads(
  db: DbOrTransaction,
  { limit, cursor }: { readonly limit: number; readonly cursor: string },
): Promise<PayloadStep> {
  const [row] = await db.execute<{
    cleared: number;
    byDay: RemovedByPeriod;
    cursor: string;
    more: boolean;
  }>(sql`
    select cleared, by_day as "byDay", last as cursor, more from clear_payloads(${cursor}, ${limit}::int)`);
  if (row === undefined) throw new Error('clear_payloads returned nothing');
  return row;
}
