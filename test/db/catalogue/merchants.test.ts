import { sql } from 'drizzle-orm';
import { loadMerchant } from '../../../db/catalogue/merchants';
import { createPartner } from '../../../db/catalogue/partners';
import { importMerchants } from '../../../ops/import/merchants';
import { importProducts } from '../../../ops/import/products';
import { PRODUCT_ROW } from '../../ops/run';
import { useDatabase } from '../../support/database';

const OPTIONS = { actor: 'tester', action: 'test.import', dryRun: false };
const PRODUCT = {
  ...PRODUCT_ROW,
  minimum_deposit: { percent: '12.5' },
  maximum_deposit: { amount: '5000.00' },
  valid_to: '2099-12-31',
};

const database = useDatabase({ poolSize: 2 });

beforeAll(async () => {
  await createPartner(database.db, { partnerId: 'P100001', name: 'Example' });
  await importMerchants(
    database.db,
    [
      {
        merchant_id: 'M300001',
        trading_name: 'Example Shop',
        fca_authorised: true,
        deposit_floor: { percent: '10', amount: '50.00' },
        partner_access: 'restricted',
        partners: ['P100001'],
      },
    ],
    OPTIONS,
  );
  await importProducts(
    database.db,
    [
      PRODUCT,
      { ...PRODUCT, credit_product: 'Off', active: false },
      { ...PRODUCT, credit_product: 'Odd "1]" £' },
    ],
    OPTIONS,
  );
});

/** Damages a stored product, says what loadMerchant then names, and undoes the damage. */
const damage = async (set: string) => {
  const rolledBack = new Error('rolled back');
  let corrupt: readonly string[] = [];
  await database.db
    .transaction(async (tx) => {
      await tx.execute(
        sql.raw(`update product_versions v set ${set} from products p
        where p.product_id = v.product_id and p.credit_product = 'Classic 12'`),
      );
      const stored = await loadMerchant(tx, 'M300001');
      corrupt = stored?.setup.corruptFields ?? [];
      expect(stored?.setup.products).toHaveLength(1);
      throw rolledBack;
    })
    .catch((error: unknown) => {
      if (error !== rolledBack) throw error;
    });
  return corrupt;
};

describe('a product row that cannot be priced', () => {
  test.each([
    ['number_of_repayments = 0', 'number_of_repayments'],
    ['apr_basis_points = 995', 'apr'],
    ["rate_basis = 'weekly'", 'rate_basis', 'rate'],
    ["final_payment = 'balloon'", 'final_payment'],
    ['min_loan_pence = 300000000', 'minimum_loan_amount', 'maximum_loan_amount'],
    ['max_loan_pence = 9007199254740993', 'maximum_loan_amount'],
    ['deposit_max_fixed_pence = -1', 'maximum_deposit'],
    ["first_payment_type = ''", 'first_payment_type'],
    ["valid_from = '2100-01-01'", 'valid_to'],
    ["lender_name = ' '", 'lender'],
    ['version = 99', 'current_version'],
  ])('is named: %s', async (set, ...fields) => {
    expect(await damage(set)).toEqual(fields.map((field) => `products[Classic 12].${field}`));
  });

  test('is named for the floor of the merchant too', async () => {
    await database.db.execute(
      sql`update merchants set deposit_floor_basis_points = -1 where merchant_id = 'M300001'`,
    );
    const stored = await loadMerchant(database.db, 'M300001');
    expect(stored?.setup).toMatchObject({ depositFloor: null, corruptFields: ['deposit_floor'] });
    const row = { merchant_id: 'M300001', deposit_floor: null };
    const { changes } = await importMerchants(database.db, [row], OPTIONS);
    expect(changes).toHaveLength(1);
    expect((await loadMerchant(database.db, 'M300001'))?.setup.corruptFields).toEqual([]);
  });
});
