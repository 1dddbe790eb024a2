import { priceQuote } from '../../domain/quote';
import { checkProducts } from '../../ops/import/products';
import { buildProduct, buildMerchant, buildRequest } from '../domain/builders';
import { importExample, PRODUCT_ROW as GOOD, useOps } from './run';

const ops = useOps({ partners: ['P100001'], merchants: ['M300001', 'M300009'] });

test('the documented examples import as they stand, and change nothing the second time', async () => {
  const first = [
    await ops.import('merchants', importExample('merchants')),
    await ops.import('products', importExample('products')),
    await ops.import('products', importExample('products-csv'), '--csv'),
  ];
  expect(first.map(({ err }) => err)).toEqual(['', '', '']);
  expect(first.map((one) => one.json().created)).toEqual([3, 3, 2]);
  const again = await ops.import('products', importExample('products'));
  expect(again.json()).toMatchObject({ created: 0, updated: 0, unchanged: 3, changes: [] });
  expect((await ops.import('merchants', importExample('merchants'))).json()).toMatchObject({ unchanged: 3 });
});

test('the documented pay in three is a deposit of 666.60 and twice 666.70 for 2,000.00, and fits every price', () => {
  const { checked, faults } = checkProducts(JSON.parse(importExample('products-pay-in-three')));
  expect(faults).toEqual([]);
  const merchant = buildMerchant({ products: [buildProduct(checked[0]?.definition)] });
  const parts = (loanPence: number) =>
    priceQuote(buildRequest({ merchant, loanPence })).shown.map((one) => [
      one.firstPaymentAmountPence,
      one.monthlyRepaymentPence,
      one.finalRepaymentPence,
    ]);
  expect(parts(200_000)).toEqual([[66_660, 66_670, 66_670]]);
  for (let price = 10_000; price < 10_100; price += 1) {
    const [deposit = 0, first = 0, last = 0] = parts(price)[0] ?? [];
    expect(deposit + first + last).toBe(price);
    expect(Math.max(deposit, first, last) - Math.min(deposit, first, last)).toBeLessThanOrEqual(2);
  }
});

describe('importing products again', () => {
  test('a dry run has old and new values, and a warning of an APR that moves by more than five points', async () => {
    const row = { ...GOOD, credit_product: 'Dry 12' };
    await ops.import('products', [row]);
    const dry = async (apr: string, ...more: string[]) =>
      ops.run(['products import - --dry-run', ...more], JSON.stringify([{ ...row, apr }]));
    const slip = await dry('99.9');
    expect(slip.out).toContain('row 1, M300001 Dry 12: new version: apr\n    apr: 9.9 to 99.9\n');
    expect(slip.out).toContain('WARNING: row 1, M300001 Dry 12: its APR moves by 90.0 percentage points');
    expect((await dry('99.9', '--json')).json().changes).toEqual([
      {
        row: 1,
        subject: 'M300001 Dry 12',
        change: 'new version: apr',
        fields: [{ field: 'apr', from: '9.9', to: '99.9' }],
        warning: expect.stringContaining('90.0 percentage points'),
      },
    ]);
    for (const apr of ['14.9', '4.9']) expect((await dry(apr)).out).not.toContain('WARNING');
    for (const apr of ['15.0', '4.8']) expect((await dry(apr)).out).toContain('WARNING');
  });

  test('a new name that a spreadsheet may have made of another is a warning', async () => {
    const warns = async (credit_product: string) =>
      (await ops.run(['products import - --dry-run'], JSON.stringify([{ ...GOOD, credit_product }]))).out;
    // What Excel and LibreOffice save for 12/24 and 00123.
    for (const name of ['12/24/2026', '24-Dec', 'Dec-24', '123'])
      expect(await warns(name)).toContain('WARNING');
    for (const name of ['12 months', '0% 10-24', 'Dec-2024 offer'])
      expect(await warns(name)).not.toContain('WARNING');
  });

  test('makes no new version when only the place changes', async () => {
    await ops.import('products', [GOOD]);
    const moved = { ...GOOD, display_order: 9, active: false };
    expect((await ops.import('products', [moved])).json()).toMatchObject({ updated: 1 });
    expect(await ops.json('products show M300001', 'Classic 12')).toMatchObject({
      version: 1,
      active: false,
      display_order: 9,
    });
  });

  test('each of hundreds gets its own next version and place, also one that was set back', async () => {
    const rows = Array.from({ length: 501 }, (_, nth) => ({
      ...GOOD,
      merchant_id: 'M300009',
      credit_product: `Plan ${nth}`,
      display_order: nth,
    }));
    const priced = (apr: string) => rows.map((row, nth) => (nth % 2 === 0 ? { ...row, apr } : row));
    await ops.import('products', rows);
    await ops.import('products', priced('8.9'));
    await ops.database.sql`update products set current_version = 1 where credit_product = 'Plan 0'`;
    const moved = priced('7.9').map((row, nth) =>
      nth % 5 === 0 ? { ...row, display_order: 900 + nth } : row,
    );
    expect((await ops.import('products', moved)).json()).toMatchObject({ updated: 301, unchanged: 200 });
    const found = await ops.database.sql`
      select p.display_order as place, p.current_version as version, v.apr_basis_points as apr
      from products p join product_versions v on v.product_id = p.product_id and v.version = p.current_version
      where merchant_id = 'M300009' order by display_order % 900`;
    expect(found.map((one) => ({ ...one }))).toEqual(
      rows.map((_, nth) => ({
        place: nth % 5 === 0 ? 900 + nth : nth,
        version: nth % 2 === 0 ? 3 : 1,
        apr: nth % 2 === 0 ? 790 : 990,
      })),
    );
  });

  test('repairs a product whose current version is lost', async () => {
    await ops.database.sql`update products set current_version = 77 where credit_product = 'Classic 12'`;
    const repaired = await ops.import('products', [{ ...GOOD, apr: '12.9' }]);
    expect(repaired.json()).toMatchObject({ updated: 1 });
    const { versions } = await ops.json('products show M300001', 'Classic 12');
    expect(versions).toMatchObject([{ version: 2 }, { version: 1 }]);
  });
});

test('a merchants file leaves absent fields of a stored merchant as they are, and takes null away', async () => {
  const full = { merchant_id: 'M300020', trading_name: 'Full', deposit_floor: { percent: '12.5' } };
  await ops.import('merchants', [{ ...full, partner_access: 'restricted', partners: ['P100001'] }]);
  const changed = await ops.import('merchants', [
    { merchant_id: 'M300020', deposit_floor: null, show_products: false },
  ]);
  expect(changed.json()).toMatchObject({
    updated: 1,
    changes: [{ change: 'changed: show_products, deposit_floor' }],
  });
  expect(await ops.json('merchants show M300020')).toMatchObject({
    trading_name: 'Full',
    deposit_floor: null,
    show_products: false,
    partners: ['P100001'],
  });
  await ops.import('merchants', [{ merchant_id: 'M300020', partner_access: 'all' }]);
  const shown = await ops.json('merchants show M300020');
  expect(shown).toMatchObject({ partner_access: 'all', partners: [] });
  const [last] = await ops.json('changes list --subject M300020');
  expect(last.details).toEqual({
    change: 'updated',
    fields: [
      { field: 'partner_access', from: 'restricted', to: 'all' },
      { field: 'partners', from: ['P100001'], to: [] },
    ],
  });
});

test('a hidden list that leaves the summary without a price, or with one, is a warning until its style is stated', async () => {
  const id = 'M300021';
  const warningOf = async (fields: object, dry = '--dry-run') => {
    const report = (await ops.import('merchants', [{ merchant_id: id, ...fields }], dry)).json();
    return report.changes[0]?.warning ?? null;
  };
  const hidden = { show_products: false };
  expect(await warningOf(hidden)).toContain('a hidden list needs summary_style: offer to name a price');
  for (const stated of [{ fca_authorised: false }, { summary_style: 'offer' }, { summary_style: 'headline' }])
    expect(await warningOf({ ...hidden, ...stated })).toBeNull();
  await ops.json('merchants create', id, '--trading-name', 'Hidden');
  expect(await ops.json('merchants show', id)).toMatchObject({ summary_style: null });
  expect(await ops.text(`merchants set ${id} --show-products no`)).toContain(
    'WARNING: M300021: its list is hidden',
  );
  expect(await warningOf({ summary_style: 'offer' }, '--json')).toBeNull();
  await ops.import('merchants', [{ merchant_id: id, show_products: true }]);
  expect(await warningOf(hidden)).toContain('still names a price');
  expect(await warningOf({ ...hidden, summary_style: null })).toContain('plain headline');
});
