import { connectDatabase, type Database, type DbOrTransaction } from '../db/postgres/connect';
import type { KeyRing } from '../db/endpoints/key-ring';
import { type KeyEnvironment, hashKey, issueKey, findKey, findKeyByHash } from '../db/keys';
import { appendChange } from '../db/audit/change-log';
import { changeLender, listLenders } from '../db/applications/lenders';
import { loadMerchants } from '../db/catalogue/merchants';
import { createPartner, findPartner } from '../db/catalogue/partners';
import { TEST_MERCHANTS } from '../domain/test-merchants';
import { importMerchants } from '../ops/import/merchants';
import { importProducts } from '../ops/import/products';
import { takeImportTurn } from '../ops/import/rows';
import { ensureDemoEndpoints } from './demo-webhooks';
import { LENDER_NAMES } from './seed-data/products';
import { seedMerchants, type SeedMerchant } from './seed-data/merchants';
import type { DemoData } from './stack/types';

const ACTOR = 'seed';
const DEMO_PARTNER = { partnerId: 'P100001', name: 'Demo Checkout' };
/** Whom the demo partner has nothing to do with. */
const OTHER_PARTNER = { partnerId: 'P100002', name: 'Other Checkout' };

/**
 * Fills the migrated development database at an address with a demo partner, merchants and products of every kind, and with webhook endpoints
 * when they are given. What is already there stays as it is, changed by hand or not: a second start adds only what is missing, and makes no
 * version of any product.
 * @param known what the last start returned: its keys are kept while they work, since they cannot be read back.
 */
export async function seedDemo(
  databaseUrl: string,
  known: Partial<DemoData> | undefined,
  webhooks?: { readonly url: string; readonly keyRing: KeyRing },
): Promise<DemoData> {
  const database = connectDatabase({
    url: databaseUrl,
    poolSize: 1,
    applicationName: 'pfqs seed',
    statementTimeoutMs: 10_000,
  });
  try {
    const demo = await seedDatabase(database, known);
    if (webhooks) await ensureDemoEndpoints(database, { ...webhooks, partnerId: demo.partnerId });
    return demo;
  } finally {
    await database.close();
  }
}

async function seedDatabase({ db }: Database, known: Partial<DemoData> | undefined): Promise<DemoData> {
  const merchants = seedMerchants(DEMO_PARTNER.partnerId, OTHER_PARTNER.partnerId);
  const apiKeys = await db.transaction(async (tx) => {
    // Two that start together take turns.
    await takeImportTurn(tx);
    await ensurePartner(tx, DEMO_PARTNER);
    await ensurePartner(tx, OTHER_PARTNER);
    await nameLenders(tx);
    await addMissing(tx, merchants);
    return {
      test: await ensureKey(tx, 'sandbox', known?.apiKeys?.test),
      live: await ensureKey(tx, 'live', known?.apiKeys?.live),
    };
  });
  return {
    partnerId: DEMO_PARTNER.partnerId,
    apiKeys,
    merchants: [
      ...merchants.map(({ merchant, shows }) => ({ id: merchant.merchant_id, shows })),
      ...[...TEST_MERCHANTS.values()].map(({ merchant, shows }) => ({
        id: merchant.merchantId,
        shows: `${shows} (test merchant)`,
      })),
    ],
  };
}

async function ensurePartner(
  tx: DbOrTransaction,
  wanted: { partnerId: string; name: string },
): Promise<void> {
  const { partnerId, name } = wanted;
  if ((await findPartner(tx, partnerId)) !== null) return;
  await createPartner(tx, wanted);
  await appendChange(tx, { actor: ACTOR, action: 'partners.create', subject: partnerId, details: { name } });
}

/** Gives the lenders whose names are still those of the migration the names of the demo. */
async function nameLenders(tx: DbOrTransaction): Promise<void> {
  for (const { lender, name } of await listLenders(tx)) {
    const wanted = LENDER_NAMES[lender as keyof typeof LENDER_NAMES];
    if (wanted === undefined || !/^Lender [AB]$/.test(name)) continue;
    await changeLender(tx, lender, { name: wanted });
    await appendChange(tx, {
      actor: ACTOR,
      action: 'lenders.set',
      subject: lender,
      details: { name: wanted },
    });
  }
}

/** Adds the merchants that are not there, with their products, by way of the import that everybody uses. */
async function addMissing(tx: DbOrTransaction, wanted: readonly SeedMerchant[]): Promise<void> {
  const ids = wanted.map(({ merchant }) => merchant.merchant_id);
  const present = new Set((await loadMerchants(tx, ids)).map(({ setup }) => setup.merchantId));
  const missing = wanted.filter(({ merchant }) => !present.has(merchant.merchant_id));
  if (missing.length === 0) return;
  const options = { actor: ACTOR, dryRun: false };
  const rows = missing.map(({ merchant }) => merchant);
  await importMerchants(tx, rows, { ...options, action: 'merchants.import' });
  const products = missing.flatMap(({ merchant, products }) =>
    products.map((product) => ({ merchant_id: merchant.merchant_id, ...product })),
  );
  await importProducts(tx, products, { ...options, action: 'products.import' });
}

/** The given key when it still works for the demo partner, else a new one. */
async function ensureKey(
  tx: DbOrTransaction,
  environment: KeyEnvironment,
  known: string | undefined,
): Promise<string> {
  if (known !== undefined && (await works(tx, environment, known))) return known;
  const { partnerId } = DEMO_PARTNER;
  const { key, summary } = await issueKey(tx, { partnerId, environment, expiresInSeconds: null });
  const details = { partner_id: partnerId, environment, expires_at: null };
  await appendChange(tx, { actor: ACTOR, action: 'keys.create', subject: summary.keyId, details });
  return key;
}

async function works(tx: DbOrTransaction, environment: KeyEnvironment, key: string): Promise<boolean> {
  const record = await findKeyByHash(tx, hashKey(key));
  const summary = record === null ? null : await findKey(tx, record.keyId);
  if (summary === null) return false;
  const { partnerId, state, expired } = summary;
  const active = state === 'active' && !expired;
  return active && partnerId === DEMO_PARTNER.partnerId && summary.environment === environment;
}
