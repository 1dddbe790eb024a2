import { ulid } from 'ulid';
import { insertQuotes } from '../../db/quotes/store';
import { quoteRow } from '../../testbed/values';
import { importExample, PRODUCT_ROW, useOps } from './run';

const ops = useOps({ partners: ['P100001'], merchants: ['M300001', 'M300002'] });
const NAMED = ['M300001', 'Classic 12'];
const terms = async (): Promise<unknown[]> => (await ops.json('products show', ...NAMED)).versions;
beforeAll(async () => {
  await ops.import('products', [
    PRODUCT_ROW,
    { ...PRODUCT_ROW, credit_product: 'Classic 24', number_of_repayments: 24 },
  ]);
});

test('what is exported can be imported, and changes nothing: all fields, switched-off products too', async () => {
  for (const noun of ['merchants', 'products'] as const) await ops.import(noun, importExample(noun));
  const row = { ...PRODUCT_ROW, merchant_id: 'M300002' };
  await ops.import('products', [
    { ...row, active: false, display_order: 7, maximum_deposit: { amount: '12.50' } },
    { ...row, credit_product: 'Days', first_interval_days: 45, valid_to: '2027-01-31' },
  ]);
  const all = await ops.text('products export');
  expect((await ops.import('products', all)).json()).toMatchObject({ created: 0, updated: 0, unchanged: 7 });
  const own = await ops.json('products export --merchant M300002');
  expect(own.map((row: object) => Object.keys(row).includes('version'))).toEqual([false, false]);
  expect(own).toMatchObject([
    { active: false, display_order: 7 },
    { credit_product: 'Days', first_interval_days: 45 },
  ]);
});

test('a revert makes the version before the next one, warns of an APR that moves far, and is in the log', async () => {
  await ops.import('products', [{ ...PRODUCT_ROW, apr: '99.9' }]);
  const dry = await ops.text('products revert', ...NAMED, '--dry-run');
  expect(dry).toContain('M300001 Classic 12: new version: apr\n    apr: 99.9 to 9.9\n');
  expect(dry).toContain('WARNING: M300001 Classic 12: its APR moves by 90.0 percentage points');
  expect(dry).toContain('Dry run, nothing was written.');
  expect(await terms()).toHaveLength(2);
  expect(await ops.json('products revert', ...NAMED)).toMatchObject({
    updated: 1,
    changes: [{ change: 'new version: apr', warning: expect.stringContaining('90.0') }],
  });
  expect(await terms()).toMatchObject([
    { version: 3, apr: '9.9' },
    { version: 2, apr: '99.9' },
    { version: 1, apr: '9.9' },
  ]);
  const { product_id: id } = await ops.json('products show', ...NAMED);
  const [change] = await ops.json('changes list --subject', id);
  expect(change).toMatchObject({
    action: 'products.revert',
    details: { version: 3, fields: [{ field: 'apr', from: '99.9', to: '9.9' }], merchant_id: 'M300001' },
  });
  expect(await ops.text('changes show', String(change.change_id))).toContain('\n    apr: 99.9 to 9.9\n');
  expect(await ops.json('products revert', ...NAMED, '--version', '1')).toMatchObject({ unchanged: 1 });
  await ops.refuses(2, 'has no version 9', 'products revert', ...NAMED, '--version', '9');
  await ops.refuses(2, 'has no version before this one', 'products revert M300001', 'Classic 24');
});

describe('who saw a price', () => {
  const fitted = (productId: string, version: number) => ({
    productId,
    version,
    lender: 'lender_a',
    creditProduct: 'Classic 12',
    depositPence: 10_000,
    loanPence: 120_000,
    monthlyRepaymentPence: 10_521,
    totalPayablePence: 126_252,
  });
  const RESPONSE = {
    success: true,
    data: {
      summary: {
        display: true,
        finance_offer_summary:
          'Spread the cost from £105.21 a month at 9.9% APR representative. <a href="https://shop.example/finance?a=1&amp;b=2">Learn more</a>',
      },
      products: [{ credit_product: 'Classic 12' }],
    },
  };
  const ids = [1, 2, 3].map((hoursAgo) => `qte_${ulid(Date.now() - hoursAgo * 3_600_000)}`);
  beforeAll(async () => {
    const { product_id: id } = await ops.json('products show', ...NAMED);
    const rows = [[fitted(id, 2)], [fitted('prd_other', 2), fitted(id, 1)], [fitted(id, 12)]].map((own, at) =>
      quoteRow(at, {
        quoteId: ids[at] ?? '',
        merchantId: 'M300001',
        response: JSON.stringify(at === 2 ? { data: { summary: { display: false } } } : RESPONSE),
        fitted: own,
      }),
    );
    await insertQuotes(ops.database.sql, rows);
  });
  const saw = (...more: string[]) =>
    ops.column('service_quote_id', 'quotes list --merchant M300001 --product', 'Classic 12', ...more);

  test.each([
    ['--limit 50', [0, 1, 2]],
    ['--version 1', [1]],
    ['--version 2', [0]],
    ['--version 3', []],
    ['--since 150m', [0, 1]],
    ['--since 150m --until 90m', [1]],
  ])('%s: only quotes that the product fitted, with this version, in this span', async (more, found) => {
    expect(await saw(...more.split(' '))).toEqual(found.map((at) => ids[at]));
  });

  test('a product needs its merchant, and a version its product', async () => {
    for (const half of ['--product Classic', '--version 2', '--merchant M300001 --version 2'])
      await ops.refuses(1, 'Say --merchant', `quotes list ${half}`);
    await ops.refuses(2, 'has no product "Typo"', 'quotes list --merchant M300001 --product Typo');
  });

  test('a quote begins with what was answered; the whole answer is in --json', async () => {
    const text = await ops.text('quotes show', ids[1] ?? '');
    expect(text).toMatch(
      /^The answer shows: Spread the cost from £105\.21 a month at 9\.9% APR representative\. Learn more\nIts product list:\n/,
    );
    expect(text).toMatch(/Classic 12 +│ 1 +│ 9\.9% +│ 12 +│ 105\.21 +│ 1200\.00 +│ 100\.00 +│ 1262\.52/);
    expect(text).not.toContain('"success"');
    expect(await ops.json('quotes show', ids[1] ?? '')).toMatchObject({
      loan_amount: '1200.00',
      customer_deposit: null,
      merchant_reference: 'basket 1',
      response: RESPONSE,
      versions: [{ version: 1, apr: '9.9' }],
    });
    expect(await ops.text('quotes show', ids[2] ?? '')).toMatch(
      /^The answer shows no finance\.\nIt has no product list\. What fitted:\n/,
    );
  });
});
