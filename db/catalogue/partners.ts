import { asc, eq, sql } from 'drizzle-orm';
import { oneRow, runPrepared, type DbOrTransaction } from '../postgres/connect';
import { partners } from '../schema';
import { Refused } from '../refused';

export type Partner = Readonly<typeof partners.$inferSelect>;
export type PartnerSwitch = Partial<Pick<Partner, 'state' | 'recovery'>>;

/**
 * Creates a partner.
 * @param wanted.partnerId `P` and six digits; null: the next free one from P100001
 */
export async function createPartner(db: DbOrTransaction, wanted: { partnerId: string | null; name: string }) {
  return db.transaction(async (tx) => {
    // The lock keeps two apart that ask for the next free id at once.
    await tx.execute(sql`select pg_advisory_xact_lock(hashtext('partners.create'))`);
    const partnerId = wanted.partnerId ?? (await nextFreeId(tx));
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

const STOP_RECOVERIES = `
  update recoveries set state = 'interrupted', updated_at = service_now()
  where partner_id = $1 and state = 'running' and key_id is not null`;

/** Changes a partner's state, or switches its recoveries, which stops the one under way. */
export async function switchPartner(db: DbOrTransaction, partnerId: string, to: PartnerSwitch) {
  return db.transaction(async (tx) => {
    const whose = eq(partners.partnerId, partnerId);
    const [old] = await tx.select().from(partners).where(whose).for('update');
    if (old === undefined) throw new Refused('not_found', `Partner ${partnerId} does not exist.`);
    const { state, recovery } = { ...old, ...to };
    if (state === old.state && recovery === old.recovery) return { changed: false, was: old, partner: old };
    const [partner = old] = await tx.update(partners).set(to).where(whose).returning();
    if (to.recovery === 'disabled') await runPrepared(tx, STOP_RECOVERIES, [partnerId]);
    return { changed: true, was: old, partner };
  });
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
