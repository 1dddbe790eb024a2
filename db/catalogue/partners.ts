import { asc, eq, sql } from 'drizzle-orm';
import { oneRow, runPrepared, type DbOrTransaction } from '../postgres/connect';
import { partners } from '../schema';
import { Refused } from '../refused';

export type Partner = Readonly<typeof partners.$inferSelect>;
export type PartnerState = Partner['state'];
export type PartnerRecoveryState = Partner['recovery'];

/** Creates a partner. @param wanted.partnerId `P` and six digits; null: the next free one from P100001. */
export async function createPartner(db: DbOrTransaction, wanted: { partnerId: string | null; name: string }) {
  return db.transaction(async (tx) => {
    // Two that ask for the next free id at once take turns.
    await tx.execute(sql`select pg_advisory_xact_lock(hashtext('partners.create'))`);
    const partnerId = wanted.partnerId ?? (await nextFreeId(tx));
    if (!/^P\d{6}$/.test(partnerId))
      throw new Refused('invalid', 'A partner id is the letter P followed by six digits.');
    const [created] = await tx
      .insert(partners)
      .values({ partnerId, name: wanted.name })
      .onConflictDoNothing()
      .returning();
    if (created === undefined) throw new Refused('conflict', `Partner ${partnerId} already exists.`);
    return created;
  });
}

export async function listPartners(db: DbOrTransaction): Promise<Partner[]> {
  return db.select().from(partners).orderBy(asc(partners.partnerId));
}

export async function findPartner(db: DbOrTransaction, partnerId: string): Promise<Partner | null> {
  const [found] = await db.select().from(partners).where(eq(partners.partnerId, partnerId));
  return found ?? null;
}

export async function existingPartner(db: DbOrTransaction, partnerId: string): Promise<Partner> {
  const found = await findPartner(db, partnerId);
  if (found === null) throw new Refused('not_found', `Partner ${partnerId} does not exist.`);
  return found;
}

type Changed = Promise<{ changed: boolean; partner: Partner }>;

export const setPartnerState = (db: DbOrTransaction, partnerId: string, state: PartnerState): Changed =>
  db.transaction((tx) => change(tx, partnerId, 'state', state));

const STOP_RECOVERIES = `
  update recoveries set state = 'interrupted', updated_at = service_now()
  where partner_id = $1 and state = 'running' and key_id is not null`;

/** Allows a partner to begin recoveries, or forbids it: its own recovery under way is then stopped. */
export const setPartnerRecovery = (db: DbOrTransaction, partnerId: string, recovery: PartnerRecoveryState) =>
  db.transaction(async (tx) => {
    const answer = await change(tx, partnerId, 'recovery', recovery);
    if (answer.changed && recovery === 'disabled') await runPrepared(tx, STOP_RECOVERIES, [partnerId]);
    return answer;
  });

async function change<Field extends 'state' | 'recovery'>(
  tx: DbOrTransaction,
  partnerId: string,
  field: Field,
  value: Partner[Field],
): Changed {
  const whose = eq(partners.partnerId, partnerId);
  const [old] = await tx.select().from(partners).where(whose).for('update');
  if (old === undefined) throw new Refused('not_found', `Partner ${partnerId} does not exist.`);
  if (old[field] === value) return { changed: false, partner: old };
  const [partner = old] = await tx
    .update(partners)
    .set({ [field]: value })
    .where(whose)
    .returning();
  return { changed: true, partner };
}

const NEXT_FREE = `
  select 'P' || min(n) as id
  from (select 100001 as n union all select substr(partner_id, 2)::int + 1 from partners) candidate
  where n between 100001 and 999999 and not exists (select 1 from partners where partner_id = 'P' || n)`;

async function nextFreeId(tx: DbOrTransaction): Promise<string> {
  const { id } = await oneRow<{ id: string | null }>(tx, NEXT_FREE);
  if (id !== null) return id;
  throw new Refused('conflict', 'No partner id is free from P100001 to P999999: name one.');
}
