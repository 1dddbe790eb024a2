import { RETENTION_KINDS, USUAL_RETENTION_DAYS, type RetentionDays } from '../../domain/retention';
import { appendChange } from '../audit/change-log';
import type { DbOrTransaction } from '../postgres/connect';
import { retentionDays } from '../schema';

class RetentionShortened extends Error {
  override readonly name = 'RetentionShortened';
}

export interface KeptDays {
  readonly days: RetentionDays;
  readonly shorten: boolean;
}

export async function readRetentionDays(db: DbOrTransaction): Promise<RetentionDays> {
  const rows = await db.select().from(retentionDays);
  if (rows.length < RETENTION_KINDS.length) throw new Error('retention_days is not complete; run migrate');
  return Object.fromEntries(rows.map(({ kind, days }) => [kind, days])) as unknown as RetentionDays;
}

/**
 * Sets the days of each kind, as the owner of the schema; absent: they stay, or the usual ones.
 * @throws RetentionShortened unless that is allowed
 */
export async function keepRetentionDays(db: DbOrTransaction, given?: KeptDays): Promise<void> {
  await db.transaction(async (tx) => {
    const kept = new Map((await tx.select().from(retentionDays)).map(({ kind, days }) => [kind, days]));
    const { days: wanted, shorten } = given ?? {
      days: { ...USUAL_RETENTION_DAYS, ...(Object.fromEntries(kept) as Partial<RetentionDays>) },
      shorten: false,
    };
    const shorter = RETENTION_KINDS.filter((kind) => wanted[kind] < (kept.get(kind) ?? 0));
    if (shorter.length > 0 && !shorten) {
      const what = shorter.map(
        (kind) =>
          `RETENTION_${kind.toUpperCase()}_DAYS is ${wanted[kind]}, and ${kept.get(kind)} days are kept`,
      );
      throw new RetentionShortened(
        `${what.join('; ')}. The days were not changed: raise the setting, or let migrate --shorten-retention lower them.`,
      );
    }
    for (const kind of RETENTION_KINDS) {
      const [before, days] = [kept.get(kind), wanted[kind]];
      if (before === days) continue;
      await tx
        .insert(retentionDays)
        .values({ kind, days })
        .onConflictDoUpdate({ target: retentionDays.kind, set: { days } });
      if (before === undefined) continue;
      const details = { days, before };
      await appendChange(tx, { actor: 'migrate', action: 'retention.days', subject: kind, details });
    }
  });
}
