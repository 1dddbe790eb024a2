import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { faultsOf, importRows, PRODUCT_ROW } from './import-rows';
import { createOpsUnderTest, type OpsUnderTest } from './run';

const GOOD = PRODUCT_ROW;

let ops: OpsUnderTest;

beforeAll(async () => {
  ops = await createOpsUnderTest();
  await ops.json('partners create --name Example --id P100001');
  await ops.json('merchants create M300001 --trading-name', 'Example Shop');
});

afterAll(() => ops.close());

describe('the documented examples', () => {
  const page = readFileSync(join(__dirname, '../../docs/import-format.md'), 'utf8');
  const example = (name: string) =>
    new RegExp(`<!-- test: ${name} -->\\n+\`\`\`\\w+\\n(.*?)\`\`\``, 's').exec(page)?.[1] ?? '';

  test('import as they stand, and change nothing the second time', async () => {
    const first = [
      await ops.run(['merchants import - --json'], example('merchants')),
      await ops.run(['products import - --json'], example('products')),
      await ops.run(['products import - --csv --json'], example('products-csv')),
    ];
    expect(first.map(({ err }) => err)).toEqual(['', '', '']);
    expect(first.map((one) => one.json().created)).toEqual([3, 3, 2]);
    const again = await importRows(ops, 'products', example('products'));
    expect(again.json()).toMatchObject({ created: 0, updated: 0, unchanged: 3, changes: [] });
    expect((await importRows(ops, 'merchants', example('merchants'))).json()).toMatchObject({ unchanged: 3 });
  });

  test('name every field that the schema knows', () => {
    for (const name of Object.keys({
      ...GOOD,
      rate_basis: 0,
      first_interval_days: 0,
      representative_example: 0,
    })) {
      expect(page).toContain(`\`${name}\``);
    }
  });
});

const versions = async () =>
  (
    (await ops.json('products show M300001', 'Classic 12')) as {
      versions: { version: number; apr: string }[];
    }
  ).versions;

describe('importing products again', () => {
  test('a dry run has old and new values, and a warning of an APR that moves by more than five points', async () => {
    const row = { ...GOOD, credit_product: 'Dry 12' };
    await importRows(ops, 'products', [row]);
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

  test('of a CSV file says lines only, in changes and in faults', async () => {
    const head =
      'merchant_id,credit_product,lender,number_of_repayments,apr,minimum_loan_amount,maximum_loan_amount';
    const line = (name: string) => `M300001,${name},lender_a,12,9.9,250.00,25000.00`;
    const importing = async (...lines: string[]) =>
      (await ops.run(['products import - --dry-run --json'], lines.join('\n'))).json();
    const { changes } = await importing(head, '', line('Line A'), line('Line B'));
    expect(changes.map(({ line: at, row }: { line: number; row?: number }) => [at, row])).toEqual([
      [3, undefined],
      [4, undefined],
    ]);
    const { error } = await importing(head, line('Line A'), '', line('Line A'));
    expect(error.faults).toEqual([
      { row: null, line: 4, field: 'credit_product', message: 'is the same as in line 2' },
    ]);
  });

  test('makes a new version when terms change, and none when nothing or only the place does', async () => {
    expect((await importRows(ops, 'products', [GOOD])).json()).toMatchObject({ created: 1 });
    expect((await importRows(ops, 'products', [GOOD])).json()).toMatchObject({ unchanged: 1, updated: 0 });
    expect((await importRows(ops, 'products', [{ ...GOOD, apr: '10.9' }])).json()).toMatchObject({
      updated: 1,
      changes: [{ row: 1, subject: 'M300001 Classic 12', change: 'new version: apr', warning: null }],
    });
    expect((await versions()).map(({ version, apr }) => [version, apr])).toEqual([
      [2, '10.9'],
      [1, '9.9'],
    ]);
    const moved = { ...GOOD, apr: '10.9', display_order: 9, active: false };
    expect((await importRows(ops, 'products', [moved])).json()).toMatchObject({ updated: 1 });
    expect(await ops.json('products show M300001', 'Classic 12')).toMatchObject({
      version: 2,
      active: false,
      display_order: 9,
    });
  });

  test('with --dry-run says what would happen and writes nothing', async () => {
    const outcome = await importRows(ops, 'products', [{ ...GOOD, apr: '11.9' }], '--dry-run');
    expect(outcome.json()).toMatchObject({ dry_run: true, updated: 1 });
    expect((await versions())[0]).toMatchObject({ version: 2 });
  });

  test('accepts what show prints', async () => {
    const {
      product_id: _,
      version: __,
      lender_name: ____,
      versions: ___,
      ...row
    } = (await ops.json('products show M300001', 'Classic 12')) as Record<string, unknown>;
    expect((await importRows(ops, 'products', [row])).json()).toMatchObject({ unchanged: 1 });
  });

  test('repairs a product whose current version is lost', async () => {
    await ops.database.db.execute(
      sql`update products set current_version = 77 where credit_product = 'Classic 12'`,
    );
    expect((await importRows(ops, 'products', [{ ...GOOD, apr: '12.9' }])).json()).toMatchObject({
      updated: 1,
    });
    expect((await versions()).map(({ version }) => version)).toEqual([3, 2, 1]);
  });
});

describe('a merchants file', () => {
  test('names every fault, and writes nothing', async () => {
    const faults = await faultsOf(ops, 'merchants', [
      { merchant_id: 'M300010', trading_name: 'Fine' },
      { merchant_id: 'M12345', fca_authorised: 'yes' },
      { merchant_id: 'M300011', partners: ['P100001'] },
      { merchant_id: 'M300012', partner_access: 'restricted' },
      { merchant_id: 'M300013', partner_access: 'restricted', partners: ['P999999', 'P1'] },
      { merchant_id: 'M300014', partner_access: 'restricted', partners: ['P999999'] },
      { merchant_id: 'M300010' },
      { merchant_id: 'M000005' },
      { merchant_id: 'M300015', deposit_floor: {}, trading_name: ' ' },
    ]);
    expect(faults).toEqual([
      expect.stringMatching(/^2 merchant_id must be M and six or seven digits/),
      '2 fca_authorised must be true or false',
      '3 partner_access must be restricted when partners are named',
      '4 partners must name at least one partner when partner_access is restricted',
      '5 partners.1 must be the letter P and six digits',
      '6 partners P999999 does not exist',
      '7 merchant_id is the same as in row 1',
      '8 merchant_id is a designated test merchant, whose answers are fixed',
      '9 trading_name must not be empty',
      '9 trading_name must not begin or end with white space',
      '9 deposit_floor must have percent, amount or both',
    ]);
    expect((await ops.run(['merchants show M300010'])).code).toBe(2);
  });

  test('leaves absent fields of a stored merchant as they are, and takes null away', async () => {
    const full = {
      merchant_id: 'M300020',
      trading_name: 'Full',
      fca_authorised: true,
      deposit_floor: { percent: '12.5' },
    };
    await importRows(ops, 'merchants', [{ ...full, partner_access: 'restricted', partners: ['P100001'] }]);
    const changed = await importRows(ops, 'merchants', [
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
    await importRows(ops, 'merchants', [{ merchant_id: 'M300020', partner_access: 'all' }]);
    expect(await ops.json('merchants show M300020')).toMatchObject({
      partner_access: 'all',
      partners: [],
    });
  });
});

test('imports thousands of rows by a few statements', async () => {
  const { sql: statement } = ops.database;
  await statement`create table statements (of text)`;
  await statement`grant insert on statements to quotes_ops`;
  await statement`
    create function note_statement() returns trigger language plpgsql as
    $$ begin insert into statements values (tg_table_name); return null; end $$`;
  for (const table of ['merchants', 'change_log']) {
    await statement`
      create trigger note_statement after insert on ${statement(table)}
      for each statement execute function note_statement()`;
  }
  const rows = Array.from({ length: 2_000 }, (_, place) => ({
    merchant_id: `M8${String(place).padStart(6, '0')}`,
  }));
  expect((await importRows(ops, 'merchants', rows)).json()).toMatchObject({ created: 2_000 });
  const written = await statement<{ of: string; count: number }[]>`
    select of, count(*)::int as count from statements group by of order by of`;
  expect(written).toEqual([
    { of: 'change_log', count: 1 },
    { of: 'merchants', count: 2 },
  ]);
}, 120_000);
