import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { PRODUCT_ROW } from './product-row';
import { createOpsUnderTest, type OpsUnderTest } from './run';

const GOOD = PRODUCT_ROW;

let ops: OpsUnderTest;

beforeAll(async () => {
  ops = await createOpsUnderTest();
  await ops.json('partners', 'create', '--name', 'Example', '--id', 'P100001');
  await ops.json('merchants', 'create', 'M300001', '--trading-name', 'Example Shop');
});

afterAll(() => ops.close());

const importRows = (noun: 'products' | 'merchants', rows: unknown, ...options: string[]) =>
  ops.run(
    [noun, 'import', '-', '--json', ...options],
    typeof rows === 'string' ? rows : JSON.stringify(rows),
  );

/** Faults as `row field message`. */
async function faultsOf(noun: 'products' | 'merchants', rows: unknown): Promise<string[]> {
  const outcome = await importRows(noun, rows);
  expect(outcome.code).toBe(1);
  const { error } = outcome.json() as {
    error: { faults: { row: number | null; field: string | null; message: string }[] };
  };
  return error.faults.map(({ row, field, message }) => `${row} ${field} ${message}`);
}

describe('the documented examples', () => {
  const page = readFileSync(join(__dirname, '../../docs/import-format.md'), 'utf8');
  const example = (name: string) =>
    new RegExp(`<!-- test: ${name} -->\\n+\`\`\`\\w+\\n(.*?)\`\`\``, 's').exec(page)?.[1] ?? '';

  test('import as they stand, and change nothing the second time', async () => {
    const first = [
      await ops.run(['merchants', 'import', '-', '--json'], example('merchants')),
      await ops.run(['products', 'import', '-', '--json'], example('products')),
      await ops.run(['products', 'import', '-', '--csv', '--json'], example('products-csv')),
    ];
    expect(first.map(({ err }) => err)).toEqual(['', '', '']);
    expect(first.map((one) => one.json().created)).toEqual([3, 3, 2]);
    const again = await importRows('products', example('products'));
    expect(again.json()).toMatchObject({ created: 0, updated: 0, unchanged: 3, changes: [] });
    expect((await importRows('merchants', example('merchants'))).json()).toMatchObject({ unchanged: 3 });
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

describe('a CSV file with faults', () => {
  const HEAD =
    'merchant_id,credit_product,lender,number_of_repayments,apr,minimum_loan_amount,maximum_loan_amount';
  const line = (...changed: string[]) => {
    const [name = 'A', apr = '9.9', repayments = '12', lowest = '250.00'] = changed;
    return `M200001,${name},lender_a,${repayments},${apr},${lowest},25000.00`;
  };
  const refused = async (...lines: string[]) => {
    const outcome = await ops.run(['products', 'import', '-'], lines.join('\n'));
    expect(outcome).toMatchObject({ code: 1, out: '' });
    return outcome.err;
  };

  test('is recognised on standard input; all faults come at once, by line, in words of CSV, with the value', async () => {
    expect(
      await refused(
        HEAD,
        line('"a name', '9.9').replace('"a name', '"a name\nin two lines"'),
        line('B', '9,9'),
        line('C', 'nine'),
        '',
        line('D', '9.9', '12 months'),
        line('E', '9.9', '12', '£250'),
      ),
    ).toBe(
      [
        'line 2, credit_product: must not hold control characters (it is "a name\\nin two lines")',
        'line 4: has 8 cells where the heading has 7: is a comma inside a cell without quotes?',
        'line 5, apr: must be a percentage with at most 1 decimal, such as 9.9 (it is "nine")',
        'line 7, number_of_repayments: must be a whole number from 1 to 120 (it is "12 months")',
        'line 8, minimum_loan_amount: must be an amount with two decimals and nothing else, such as 1000.00 (it is "£250")',
        'error: 5 faults found; nothing was written.',
        '',
      ].join('\n'),
    );
  });

  test('a wrong heading is named once, with the one that was meant', async () => {
    const lines = ['A', 'B'].map((name) => `${line(name)},10`);
    const said = await refused(`${HEAD.replace(',apr', ',APR %')},minimum_deposit`, ...lines);
    expect(said).toContain('line 1, APR %: is no heading of this format: did you mean apr?\n');
    expect(said.match(/APR %/g)).toHaveLength(1);
    expect(said).toContain(
      'line 2, minimum_deposit: has columns of its own, with a dot in their headings, such as minimum_deposit.percent (it is "10")',
    );
    expect(await refused(HEAD.replaceAll(',', ';'), line())).toContain('commas, not by semicolons');
  });

  test('merchants, which come as JSON only, say so', async () => {
    const outcome = await ops.run(['merchants', 'import', '-'], 'merchant_id,trading_name\nM200001,Shop');
    expect(outcome).toMatchObject({
      code: 1,
      err: expect.stringContaining('merchants are imported from JSON'),
    });
  });

  test('a field of JSON has a hint too', async () => {
    const [fault] = await faultsOf('merchants', [{ merchant_id: 'M200009', tradingName: 'Shop' }]);
    expect(fault).toContain('did you mean trading_name?');
  });

  test('an inner field has a hint as well, in JSON and in a heading', async () => {
    const [floor] = await faultsOf('merchants', [
      { merchant_id: 'M200009', deposit_floor: { percnt: '10' } },
    ]);
    expect(floor).toContain(
      'deposit_floor.percnt is not a field of this format: did you mean deposit_floor.percent?',
    );
    const example = await faultsOf('products', [
      { ...GOOD, representative_example: { loanAmount: '1000.00', monthly_repayment: '90.00' } },
    ]);
    expect(example.join('\n')).toContain('did you mean representative_example.loan_amount?');
    const said = await refused(`${HEAD},minimum_deposit.Percent`, `${line()},10`);
    expect(said).toContain('did you mean minimum_deposit.percent?');
  });
});

describe('a products file with faults', () => {
  test('names every fault with row and field, and writes nothing', async () => {
    const faults = await faultsOf('products', [
      { ...GOOD, credit_product: 'Fine' },
      { ...GOOD, apr: 9.9, minimum_loan_amount: '1,000.00', colour: 'red' },
      { ...GOOD, credit_product: 'Twice' },
      { ...GOOD, credit_product: 'Twice', number_of_repayments: 121 },
      'not an object',
      { ...GOOD, merchant_id: 'M399999', lender: undefined },
      { ...GOOD, merchant_id: 'M399998' },
      { ...GOOD, minimum_deposit: { percent: '10', pounds: '1.00' }, rate_type: 'floating' },
      { ...GOOD, apr: '14.9', rate_basis: 'monthly_rate', rate: '0.79' },
      { ...GOOD, credit_product: 'Range', minimum_loan_amount: '500.00', maximum_loan_amount: '400.00' },
      { ...GOOD, merchant_id: 'M000001' },
      { ...GOOD, credit_product: 'Days', valid_from: '2026-02-30', valid_to: null },
      { ...GOOD, credit_product: 'Nul \u0000', lender: '\ud800' },
      { ...GOOD, credit_product: 'A name', lender: 'Lender A' },
      { ...GOOD, credit_product: 'Of tests', lender: 'test_lender_a' },
    ]);
    expect(faults).toEqual(
      expect.arrayContaining([
        '2 apr must be a percentage in quotes with at most 1 decimal, such as "9.9"',
        '2 minimum_loan_amount must be an amount with two decimals and nothing else, such as "1000.00"',
        '2 colour is not a field of this format',
        '4 number_of_repayments must be a whole number from 1 to 120, without quotes',
        '4 credit_product is the same as in row 3',
        '5 null must be an object: { … }',
        '6 lender is required',
        '7 merchant_id M399998 does not exist',
        '8 minimum_deposit.pounds is not a field of this format',
        '8 rate_type must be one of fixed, variable',
        expect.stringMatching(/^9 apr .*APR/),
        expect.stringMatching(/^10 minimum_loan_amount 500\.00 is above maximum_loan_amount 400\.00/),
        '11 merchant_id is a designated test merchant, whose answers are fixed',
        '12 valid_from must be a day of the calendar, such as "2027-01-31"',
        '13 credit_product must not hold control characters',
        '13 lender must not hold control characters',
        "14 lender Lender A is no lender's key: ops lenders list shows them",
        '15 lender is a lender of the designated test merchants',
      ]),
    );
    expect(faults.filter((fault) => fault.startsWith('1 '))).toEqual([]);
    const rows = faults.map((fault) => Number(fault.split(' ')[0]));
    expect(rows).toEqual(rows.toSorted((a, b) => a - b));
    expect(await ops.json('products', 'list', '--merchant', 'M300001')).toEqual([]);
  });

  test('takes a maximum deposit of 0 as a share, and refuses it as a fixed sum', async () => {
    const none = { ...GOOD, credit_product: 'No deposit', maximum_deposit: { percent: '0' } };
    expect((await importRows('products', [none])).json()).toMatchObject({ created: 1 });
    expect(await ops.json('products', 'show', 'M300001', 'No deposit')).toMatchObject({
      maximum_deposit: { percent: '0' },
    });
    const tooMuch = { ...none, minimum_deposit: { amount: '0.01' } };
    expect(await faultsOf('products', [tooMuch])).toEqual([
      expect.stringMatching(/^1 minimum_deposit is above maximum_deposit/),
    ]);
    expect(await faultsOf('products', [{ ...none, maximum_deposit: { amount: '0.00' } }])).toEqual([
      '1 maximum_deposit.amount must be above 0.00: leave it out for no fixed limit, or state a percent of "0" for no deposit at all',
    ]);
  });

  test('names faults for people, one to a line', async () => {
    const outcome = await ops.run(['products', 'import', '-'], JSON.stringify([{ ...GOOD, apr: '9.95' }]));
    expect(outcome).toMatchObject({ code: 1, out: '' });
    expect(outcome.err).toBe(
      'row 1, apr: must be a percentage in quotes with at most 1 decimal, such as "9.9" (it is "9.95")\nerror: 1 fault found; nothing was written.\n',
    );
  });

  test('is refused when a published example is not reproduced', async () => {
    const representative_example = { loan_amount: '1200.00', monthly_repayment: '105.22' };
    const faults = await faultsOf('products', [{ ...GOOD, representative_example }]);
    expect(faults).toEqual([expect.stringMatching(/^1 representative_example .*105\.2/)]);
  });

  test.each([
    ['nothing', '', 'The file is empty'],
    ['no JSON', '{"a":', 'The file is not valid JSON'],
    ['no list', '{}', 'must hold a JSON list'],
    ['no rows', '[]', 'The file holds no rows'],
    ['depth', '['.repeat(100_000), 'The file is not valid JSON'],
    ['too many rows', `[${'{},'.repeat(20_000)}{}]`, 'holds 20001 rows; at most 20000'],
    ['a NUL byte', '[\u0000]', 'holds a NUL byte (at byte 2)'],
    ['bad UTF-8', Buffer.from([0x5b, 0xff, 0x5d]), 'not valid UTF-8'],
    ['too many bytes', Buffer.alloc(10 * 1024 * 1024 + 1, ' '), 'larger than 10 MiB'],
  ])('is refused as a whole: %s', async (_, content, message) => {
    const outcome = await ops.run(['products', 'import', '-', '--json'], content);
    expect(outcome.code).toBe(1);
    expect(outcome.json().error.faults).toEqual([
      { row: null, field: null, message: expect.stringContaining(message) },
    ]);
  });

  test('does not let __proto__ pass as a field', async () => {
    const text = JSON.stringify([GOOD]).replace('{', '{"__proto__":{"apr":"1.0"},');
    expect(await faultsOf('products', text)).toEqual(['1 __proto__ is not a field of this format']);
  });

  test('that cannot be read says so', async () => {
    const outcome = await ops.run(['products', 'import', '/does/not/exist.json', '--json']);
    expect(outcome.code).toBe(1);
    expect(outcome.json().error.faults[0].message).toContain('The file cannot be read');
  });
});

const versions = async () =>
  (
    (await ops.json('products', 'show', 'M300001', 'Classic 12')) as {
      versions: { version: number; apr: string }[];
    }
  ).versions;

describe('importing products again', () => {
  test('a dry run has old and new values, and a warning of an APR that moves by more than five points', async () => {
    const row = { ...GOOD, credit_product: 'Dry 12' };
    await importRows('products', [row]);
    const dry = async (apr: string, ...more: string[]) =>
      ops.run(['products', 'import', '-', '--dry-run', ...more], JSON.stringify([{ ...row, apr }]));
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
      (await ops.run(['products', 'import', '-', '--dry-run', '--json'], lines.join('\n'))).json();
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
    expect((await importRows('products', [GOOD])).json()).toMatchObject({ created: 1 });
    expect((await importRows('products', [GOOD])).json()).toMatchObject({ unchanged: 1, updated: 0 });
    expect((await importRows('products', [{ ...GOOD, apr: '10.9' }])).json()).toMatchObject({
      updated: 1,
      changes: [{ row: 1, subject: 'M300001 Classic 12', change: 'new version: apr', warning: null }],
    });
    expect((await versions()).map(({ version, apr }) => [version, apr])).toEqual([
      [2, '10.9'],
      [1, '9.9'],
    ]);
    const moved = { ...GOOD, apr: '10.9', display_order: 9, active: false };
    expect((await importRows('products', [moved])).json()).toMatchObject({ updated: 1 });
    expect(await ops.json('products', 'show', 'M300001', 'Classic 12')).toMatchObject({
      version: 2,
      active: false,
      display_order: 9,
    });
  });

  test('with --dry-run says what would happen and writes nothing', async () => {
    const outcome = await importRows('products', [{ ...GOOD, apr: '11.9' }], '--dry-run');
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
    } = (await ops.json('products', 'show', 'M300001', 'Classic 12')) as Record<string, unknown>;
    expect((await importRows('products', [row])).json()).toMatchObject({ unchanged: 1 });
  });

  test('repairs a product whose current version is lost', async () => {
    await ops.database.db.execute(
      sql`update products set current_version = 77 where credit_product = 'Classic 12'`,
    );
    expect((await importRows('products', [{ ...GOOD, apr: '12.9' }])).json()).toMatchObject({ updated: 1 });
    expect((await versions()).map(({ version }) => version)).toEqual([3, 2, 1]);
  });
});

describe('a merchants file', () => {
  test('names every fault, and writes nothing', async () => {
    const faults = await faultsOf('merchants', [
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
    expect((await ops.run(['merchants', 'show', 'M300010'])).code).toBe(2);
  });

  test('leaves absent fields of a stored merchant as they are, and takes null away', async () => {
    const full = {
      merchant_id: 'M300020',
      trading_name: 'Full',
      fca_authorised: true,
      deposit_floor: { percent: '12.5' },
    };
    await importRows('merchants', [{ ...full, partner_access: 'restricted', partners: ['P100001'] }]);
    const changed = await importRows('merchants', [
      { merchant_id: 'M300020', deposit_floor: null, show_products: false },
    ]);
    expect(changed.json()).toMatchObject({
      updated: 1,
      changes: [{ change: 'changed: show_products, deposit_floor' }],
    });
    expect(await ops.json('merchants', 'show', 'M300020')).toMatchObject({
      trading_name: 'Full',
      deposit_floor: null,
      show_products: false,
      partners: ['P100001'],
    });
    await importRows('merchants', [{ merchant_id: 'M300020', partner_access: 'all' }]);
    expect(await ops.json('merchants', 'show', 'M300020')).toMatchObject({
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
  expect((await importRows('merchants', rows)).json()).toMatchObject({ created: 2_000 });
  const written = await statement<{ of: string; count: number }[]>`
    select of, count(*)::int as count from statements group by of order by of`;
  expect(written).toEqual([
    { of: 'change_log', count: 1 },
    { of: 'merchants', count: 2 },
  ]);
}, 120_000);
