import { sql } from 'drizzle-orm';
import { claimDue, type Claim, type ClaimOptions } from '../../../db/notifications/claim';
import { createPartner } from '../../../db/catalogue/partners';
import type { DbOrTransaction } from '../../../db/postgres/connect';
import { openTestDatabase, type OpenTestDatabase } from '../../support/database';
import { addEndpoint, newKeyRingText, storeStatus } from '../../support/notifications';

const keyRing = newKeyRingText();
const PARTNERS = ['P100001', 'P100002', 'P100003'] as const;
let database: OpenTestDatabase;

beforeAll(async () => {
  // Whoever waits for a lock fails after three seconds.
  database = await openTestDatabase({ poolSize: 6, statementTimeoutMs: 3_000 });
  for (const partnerId of PARTNERS) {
    await createPartner(database.db, { partnerId, name: 'Example' });
    await addEndpoint(database, { partnerId, url: 'https://hook.example/x', keyRing });
  }
});
beforeEach(() => database.sql`truncate notifications, deliveries`);
afterAll(() => database.close());

const claim = (through: DbOrTransaction, options: Partial<ClaimOptions> = {}): Promise<Claim> =>
  claimDue(through, { limit: 64, slots: 4, leaseMs: 60_000, turn: null, ...options });
const partnersOf = ({ claimed }: Claim) => claimed.map(({ partnerId }) => partnerId);

async function store(partnerId: string, count: number): Promise<void> {
  for (let nth = 0; nth < count; nth += 1) await storeStatus(database, { partnerId });
}

it('of one endpoint, held open, does not block the claim of another, and is left alone', async () => {
  const [one, two, three] = PARTNERS;
  for (const partnerId of PARTNERS) await store(partnerId, 2);
  await database.db.transaction(async (open) => {
    // One is taken, the other stays: the endpoint is this claim's alone until it commits.
    expect(partnersOf(await claim(open, { limit: 1 }))).toEqual([one]);
    const beside = await claim(database.db);
    expect(partnersOf(beside).toSorted()).toEqual([two, two, three, three]);
    expect(beside).toMatchObject({ waiting: true, contended: true });
    await store(two, 1);
    expect(partnersOf(await claim(database.db))).toEqual([two]);
  });
  const after = await claim(database.db);
  expect(partnersOf(after)).toEqual([one]);
  expect(after).toMatchObject({ contended: false });
});

it('that rolls back has taken nothing', async () => {
  const [one] = PARTNERS;
  await store(one, 2);
  const rolledBack = database.db.transaction(async (open) => {
    expect((await claim(open)).claimed).toHaveLength(2);
    expect(await claim(database.db)).toMatchObject({ claimed: [], contended: true });
    throw new Error('its process dies');
  });
  await expect(rolledBack).rejects.toThrow('its process dies');
  expect((await claim(database.db)).claimed).toHaveLength(2);
});

it('does not wait for its flush', async () => {
  await store(PARTNERS[0], 1);
  await database.db.transaction(async (open) => {
    await open.execute(sql`set local synchronous_commit = on`);
    expect((await claim(open)).claimed).toHaveLength(1);
    expect(await open.execute(sql`show synchronous_commit`)).toEqual([{ synchronous_commit: 'off' }]);
  });
});

it('counts the slots that others have just taken, however many race', async () => {
  for (const partnerId of PARTNERS) await store(partnerId, 12);
  const taken: string[] = [];
  for (let round = 0; round < 8; round += 1) {
    const claims = await Promise.all(Array.from({ length: 6 }, () => claim(database.db, { limit: 5 })));
    taken.push(...claims.flatMap(partnersOf));
  }
  expect(taken.toSorted()).toEqual(
    PARTNERS.flatMap((partnerId) => Array.from({ length: 4 }, () => partnerId)),
  );
});
