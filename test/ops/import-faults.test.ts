import { checkProducts } from '../../ops/import/products';
import { PRODUCT_ROW as GOOD, useOps } from './run';

const ops = useOps();
beforeAll(async () => {
  await ops.json('partners create --name Example --id P100001');
  await ops.json('merchants create M300001 --trading-name', 'Example Shop');
});

/** Faults of a refused import as `row field message`. */
async function faultsOf(noun: 'products' | 'merchants', rows: unknown): Promise<string[]> {
  const outcome = await ops.import(noun, rows);
  expect(outcome.code).toBe(1);
  const { faults } = outcome.json().error as Record<'faults', Record<'row' | 'field' | 'message', string>[]>;
  return faults.map(({ row, field, message }) => `${row} ${field} ${message}`);
}

describe('a CSV file with faults', () => {
  const HEAD = Object.keys(GOOD).join();
  const line = (...changed: string[]) => {
    const [name = 'A', apr = '9.9', repayments = '12', lowest = '250.00'] = changed;
    return `M300001,${name},lender_a,${repayments},${apr},${lowest},25000.00`;
  };
  const refused = async (...lines: string[]) => {
    const outcome = await ops.run(['products import -'], lines.join('\n'));
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
        'line 2, credit_product: must not contain white space other than single spaces (U+000A at character 7) (it is "a name\\nin two lines")',
        'line 4: has 8 cells where the heading has 7: is a comma inside a cell without quotes?',
        'line 5, apr: must be a percentage with at most 1 decimal, such as 9.9 (it is "nine")',
        'line 7, number_of_repayments: must be a whole number from 1 to 120 (it is "12 months")',
        'line 8, minimum_loan_amount: must be an amount with two decimals and nothing else, such as 1000.00: write it without the currency (it is "£250")',
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

  test('a field of JSON has a hint too, and an inner field, in JSON and in a heading', async () => {
    const merchant = { merchant_id: 'M200009', tradingName: 'Shop', deposit_floor: { percnt: '10' } };
    const faults = (await faultsOf('merchants', [merchant])).join('\n');
    expect(faults).toContain('did you mean trading_name?');
    expect(faults).toContain(
      'deposit_floor.percnt is not a field of this format: did you mean deposit_floor.percent?',
    );
    const representative_example = { loanAmount: '1000.00', monthly_repayment: '90.00' };
    const example = await faultsOf('products', [{ ...GOOD, representative_example }]);
    expect(example.join('\n')).toContain('did you mean representative_example.loan_amount?');
    const said = await refused(`${HEAD},minimum_deposit.Percent`, `${line()},10`);
    expect(said).toContain('did you mean minimum_deposit.percent?');
  });
});

describe('a field that a JSON file states twice', () => {
  const refusedText = async (noun: 'products' | 'merchants', text: string) => {
    const outcome = await ops.import(noun, text);
    expect(outcome.code).toBe(1);
    return (outcome.json().error.faults as { row: number; field: string; message: string }[]).map(
      ({ row, field, message }) => `${row} ${field} ${message}`,
    );
  };
  const message = 'is stated twice: leave one of them out';

  test('is refused by name, in whatever spelling, at whatever depth, each of them', async () => {
    const product = JSON.stringify(GOOD).slice(0, -1);
    const inner = '"minimum_deposit":{"percent":"10","percent":"20"}';
    const file = `[{},${product},"apr":"19.9"},${product},"\\u0061pr":"19.9",${inner},"apr":"1"}]`;
    expect(await refusedText('products', file)).toEqual([
      `2 apr ${message}`,
      `3 apr ${message}`,
      `3 minimum_deposit.percent ${message}`,
      `3 apr ${message}`,
    ]);
    expect(
      await refusedText(
        'merchants',
        '[{"merchant_id":"M300009","fca_authorised":false,"fca_authorised":true}]',
      ),
    ).toEqual([`1 fca_authorised ${message}`]);
    await ops.refuses(2, '', 'merchants show M300009');
  });

  test('is one of the same object only, and what only looks like a name is none', async () => {
    const named = (credit_product: string) => ({
      ...GOOD,
      credit_product,
      minimum_deposit: { percent: '10' },
    });
    const file = JSON.stringify([
      named('"apr": "apr": {\\'),
      { ...named('b'), maximum_deposit: { percent: '20' } },
    ]);
    expect((await ops.import('products', file, '--dry-run')).json()).toMatchObject({ created: 2 });
  });
});

describe('a CSV file that a spreadsheet saved', () => {
  beforeAll(() => ops.json('merchants create M300003 --trading-name', 'Sheets'));
  const HEAD =
    'merchant_id,credit_product,lender,number_of_repayments,apr,minimum_loan_amount,maximum_loan_amount';
  const importCsv = async (file: string | Buffer, ...more: string[]) =>
    ops.run(['products import - --csv --json', ...more], file);
  const faultsIn = async (file: string | Buffer) => {
    const outcome = await importCsv(file, '--dry-run');
    expect([outcome.code, outcome.out]).toEqual([1, '']);
    return (outcome.json().error.faults as { line?: number; field: string | null; message: string }[]).map(
      ({ line, field, message }) => [line ?? null, field, message],
    );
  };

  test('is read: byte order mark, CRLF, TRUE, 250, 9.90, rows and columns without cells, cells left out at the end', async () => {
    const file = [
      `\uFEFF${HEAD},minimum_deposit.percent,minimum_deposit.amount,active,,`,
      'M300003,"Saved by ""Excel"", 12",lender_a,12,9.90,250,25000,10.00,50.5,FALSE,,',
      ',,,,,,,,,,,',
      '',
      // Excel leaves out empty cells at the end of later rows.
      'M300003,Saved 24,lender_a,24,9.9,250.5,25000.00',
      ',,,,,,,,,,,',
      '',
    ].join('\r\n');
    const outcome = await importCsv(file);
    expect(outcome.json()).toMatchObject({ created: 2, changes: [{ line: 2 }, { line: 5 }] });
    expect(await ops.json('products show M300003', 'Saved by "Excel", 12')).toMatchObject({
      apr: '9.9',
      minimum_loan_amount: '250.00',
      maximum_loan_amount: '25000.00',
      minimum_deposit: { percent: '10', amount: '50.50' },
      active: false,
    });
    expect(await ops.json('products show M300003', 'Saved 24')).toMatchObject({
      minimum_loan_amount: '250.50',
      minimum_deposit: null,
      active: true,
    });
  });

  const row = (cells: string, columns = 'valid_from,rate,active') =>
    `${HEAD},${columns}\r\nM300003,Sheet,lender_a,12,9.9,250.00,25000.00,${cells}\r\n`;
  test.each([
    ['31/01/2027,,', 'valid_from', /such as 2027-01-31: give the column the format yyyy-mm-dd$/],
    ['31-Jan-27,,', 'valid_from', /such as 2027-01-31: give the column the format yyyy-mm-dd$/],
    ['46418,,', 'valid_from', /such as 2027-01-31: give the column the format yyyy-mm-dd$/],
    [',9.9%,', 'rate', /^must be a percentage .* such as 0.79: write it without the sign, 10 for 10 %$/],
    [',"9,9",', 'rate', /: write a point for the decimal comma$/],
    [',1E-01,', 'rate', /: the spreadsheet has cut the number/],
    [',#REF!,', 'rate', /: the spreadsheet shows an error there$/],
    [',,WAHR', 'active', /^must be true or false$/],
  ])('is refused with the form to write: %s', async (cells, field, said) => {
    expect(await faultsIn(row(cells))).toEqual([[2, field, expect.stringMatching(said)]]);
  });

  test.each([
    ['"1,000,000.00"', /such as 1000.00: write it without separators of thousands$/],
    ['1E+06', /: the spreadsheet has cut the number: give the column a number format and write all digits$/],
    ['£25000.00', /: write it without the currency$/],
    ['"25000,00"', /: write a point for the decimal comma$/],
    ['250.005', /^must be an amount with two decimals and nothing else, such as 1000.00$/],
  ])('is refused with the amount to write: %s', async (cell, said) => {
    const file = `${HEAD}\nM300003,Sheet,lender_a,12,9.9,250.00,${cell}\n`;
    expect(await faultsIn(file)).toEqual([[2, 'maximum_loan_amount', expect.stringMatching(said)]]);
  });

  const whole = (separator: string) => row('2027-01-31,,').replaceAll(',', separator);
  test.each<[string, string | Buffer, RegExp]>([
    ['sep=;', `sep=;\r\n${whole(';')}`, /^Line 1 \(sep=\) is for Excel alone: delete it/],
    ['semicolons', whole(';'), /must be separated by commas, not by semicolons/],
    ['tabs', whole('\t'), /must be separated by commas, not by tabs/],
    ['UTF-16', Buffer.from(`\uFEFF${whole('\t')}`, 'utf16le'), /UTF-16, .*save it as "CSV UTF-8/],
    [
      'Windows-1252',
      Buffer.from(row('£,,').replace('Sheet', 'Over £500'), 'latin1'),
      /not valid UTF-8, first in line 2: .*save it as "CSV UTF-8/,
    ],
    ['a workbook', Buffer.from('504b030414000600', 'hex'), /is an Excel workbook .*save it as "CSV UTF-8/],
  ])('is refused as a whole, with what to do: %s', async (_, file, said) => {
    expect(await faultsIn(file)).toEqual([[null, null, expect.stringMatching(said)]]);
    if (typeof file === 'string') expect((await ops.run(['products import -'], file)).err).toMatch(/commas/);
  });

  test('a cell without a heading is a fault of its line, and so is a quote out of place', async () => {
    const cells = 'M300003,Sheet,lender_a,12,9.9,250.00,25000.00';
    expect(await faultsIn(`${HEAD},,active\n${cells},x,TRUE\n`)).toEqual([
      [2, null, 'has a cell in column 8, which has no heading'],
    ]);
    expect(await faultsIn(`${HEAD}\n${cells}\nM300003,a "b",c\n`)).toEqual([
      [null, null, expect.stringContaining('not valid CSV in line 3: a quote is out of place')],
    ]);
  });
});

describe('a name', () => {
  const named = (...names: (string | [name: string, active: boolean])[]) =>
    names.map((one) => {
      const [credit_product, active] = typeof one === 'string' ? [one, true] : one;
      return { ...GOOD, merchant_id: 'M300002', credit_product, active };
    });
  beforeAll(() => ops.json('merchants create M300002 --trading-name', 'Names'));

  test.each([
    ['Classic\u200b 12', 'must not contain characters that show nothing (U+200B at character 8)'],
    ['\u200b', 'must not contain characters that show nothing (U+200B at character 1)'],
    ['\u202e21 cissalC', 'must not contain characters that show nothing (U+202E at character 1)'],
    ['a\u3164', 'must not contain characters that show nothing (U+3164 at character 2)'],
    ['1\ufe0f2 months', 'must not contain characters that show nothing (U+FE0F at character 2)'],
    ['\u{1f6cb}\u200d12', 'must not contain characters that show nothing (U+200D at character 2)'],
    ['Classic\u00a012', 'must not contain white space other than single spaces (U+00A0 at character 8)'],
    ['\u{1f6cb} a  b', 'must not contain two spaces in a row (U+0020 at character 5)'],
  ])('with what nobody sees is refused, naming code point and position: %j', async (name, message) => {
    expect(await faultsOf('products', named(name))).toEqual([`1 credit_product ${message}`]);
    expect(await faultsOf('merchants', [{ merchant_id: 'M300009', trading_name: name }])).toEqual([
      `1 trading_name ${message}`,
    ]);
    await ops.refuses(1, `The name ${message}`.replaceAll(/[+()]/g, '.'), 'partners create --name', name);
    const format = ['--reference-format', '\\d{9}'];
    await ops.refuses(1, /The name must not/, 'lenders create lender_n --name', name, ...format);
  });

  test('with emoji is taken, and stored in one form', async () => {
    const names = [
      'Sofa \u{1f6cb}\ufe0f',
      '\u{1f469}\u{1f3fd}\u200d\u{1f4bb} 12',
      '\u2764\ufe0f\u200d\u{1f525}',
      '1\ufe0f\u20e3 Cafe\u0301',
    ];
    expect((await ops.import('products', named(...names))).json()).toMatchObject({ created: 4 });
    expect(await ops.column('credit_product', 'products list --merchant M300002')).toEqual(
      names.map((name) => name.normalize('NFC')),
    );
    // The same file again changes nothing.
    expect((await ops.import('products', named(...names))).json()).toMatchObject({ unchanged: 4 });
    const [last = ''] = names.slice(-1);
    expect(await faultsOf('products', named(last, last.normalize('NFC')))).toEqual([
      '2 credit_product is the same as in row 1',
    ]);
  });

  test('that looks like that of another active product is refused, in the file and beside it', async () => {
    expect(await faultsOf('products', named('Straße 12', 'STRASSE 12', 'Other', 'ｏｔｈｅｒ'))).toEqual([
      '2 credit_product looks like the one in row 1, "Straße 12"',
      '4 credit_product looks like the one in row 3, "Other"',
    ]);
    expect((await ops.import('products', named('Straße 12'))).json()).toMatchObject({ created: 1 });
    expect(await faultsOf('products', named('strasse 12'))).toEqual([
      '1 credit_product looks like the active product "Straße 12"',
    ]);
    // Another merchant's, an inactive one, and one that replaces it.
    const elsewhere = named('strasse 12').map((one) => ({ ...one, merchant_id: 'M300003' }));
    expect((await ops.import('products', elsewhere)).json()).toMatchObject({ created: 1 });
    expect((await ops.import('products', named(['strasse 12', false]))).json()).toMatchObject({ created: 1 });
    await ops.refuses(
      1,
      /"Straße 12" has a name that looks the same/,
      'products enable M300002',
      'strasse 12',
    );
    expect((await ops.import('products', named(['Straße 12', false], 'strasse 12'))).json()).toMatchObject({
      updated: 2,
    });
  });

  test('that was stored earlier stays valid, and is reported', async () => {
    const old = 'Old\u200b 12';
    await ops.import('products', named('Old placeholder', 'old  12x'.replace('  ', ' ')));
    await ops.database
      .sql`update products set credit_product = ${old} where credit_product = 'Old placeholder'`;
    await ops.database.sql`update products set credit_product = 'Old 12' where credit_product = 'old 12x'`;
    await ops.database.sql`update merchants set trading_name = ${old} where merchant_id = 'M300002'`;
    const again = named(old, 'Old 12').map((one) => ({ ...one, apr: '10.9' }));
    expect((await ops.import('products', again)).json()).toMatchObject({ updated: 2 });
    const name_problem = 'must not contain characters that show nothing (U+200B at character 4)';
    expect(await ops.json('products show M300002', old)).toMatchObject({ name_problem });
    expect(await ops.text('products list --merchant M300002 --wide')).toContain(name_problem);
    const merchant = { merchant_id: 'M300002', trading_name: old, show_products: true };
    expect((await ops.import('merchants', [merchant])).json()).toMatchObject({ unchanged: 1 });
  });
});

test('a share below 1 % is warned of, as most likely a fraction', async () => {
  const product = { ...GOOD, credit_product: 'Fraction', apr: '0.2', minimum_deposit: { percent: '0.1' } };
  const [change] = (
    await ops.import('products', [{ ...product, maximum_deposit: { percent: '0.5' } }], '--dry-run')
  ).json().changes;
  expect(change.warning).toBe(
    'its apr is 0.2 %: did you mean 20 %?; its minimum_deposit.percent is 0.1 %: did you mean 10 %?; its maximum_deposit.percent is 0.5 %: did you mean 50 %?',
  );
  const merchant = { merchant_id: 'M300008', trading_name: 'Shop', deposit_floor: { percent: '0.1' } };
  expect((await ops.import('merchants', [merchant], '--dry-run')).json().changes).toMatchObject([
    { warning: 'its deposit_floor.percent is 0.1 %: did you mean 10 %?' },
  ]);
  const fine = { ...merchant, deposit_floor: { percent: '1' } };
  expect((await ops.import('merchants', [fine], '--dry-run')).json().changes).toMatchObject([
    { warning: null },
  ]);
});

test('a merchants file with faults names every one, and writes nothing', async () => {
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
  await ops.refuses(2, '', 'merchants show M300010');
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
      { ...GOOD, credit_product: 'Nul \u0000' },
      { ...GOOD, credit_product: 'A name', lender: 'Lender A' },
      { ...GOOD, credit_product: 'Of tests', lender: 'test_lender_a' },
      { ...GOOD, credit_product: 'Half a pair', lender: '\ud800' },
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
        '13 credit_product must not contain characters that show nothing (U+0000 at character 5)',
        "14 lender Lender A is no lender's key: ops lenders list shows them",
        '15 lender is a lender of the designated test merchants',
        '16 lender must not contain characters that show nothing (U+D800 at character 1)',
      ]),
    );
    expect(faults.filter((fault) => fault.startsWith('1 '))).toEqual([]);
    const rows = faults.map((fault) => Number(fault.split(' ')[0]));
    expect(rows).toEqual(rows.toSorted((a, b) => a - b));
    expect(await ops.json('products list --merchant M300001')).toEqual([]);
  });

  test('takes a maximum deposit of 0 as a share, and refuses it as a fixed sum', async () => {
    const none = { ...GOOD, credit_product: 'No deposit', maximum_deposit: { percent: '0' } };
    expect((await ops.import('products', [none])).json()).toMatchObject({ created: 1 });
    expect(await ops.json('products show M300001', 'No deposit')).toMatchObject({
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
    const outcome = await ops.run(['products import - --json'], content);
    expect(outcome.code).toBe(1);
    expect(outcome.json().error.faults).toEqual([
      { row: null, field: null, message: expect.stringContaining(message) },
    ]);
  });
});

const fieldsAtFault = (changes: object) =>
  checkProducts([{ ...GOOD, ...changes }]).faults.map(({ field }) => field);

const monthly = { rate_basis: 'monthly_rate' };

test.each<[string, object, string]>([
  ['a missing lender', { lender: ' ' }, 'lender'],
  ['a name that is too long', { credit_product: 'x'.repeat(121) }, 'credit_product'],
  ['no repayments', { number_of_repayments: 0 }, 'number_of_repayments'],
  ['a negative APR', { apr: '-0.1' }, 'apr'],
  ['an APR above 10,000 %', { apr: '10000.1' }, 'apr'],
  ['an unknown rate basis', { rate_basis: 'daily' }, 'rate_basis'],
  ['an unknown rounding', { instalment_rounding: 'up' }, 'instalment_rounding'],
  ['a rate above 10,000 %', { ...monthly, rate: '10000.1' }, 'rate'],
  ['a loan below 10.00', { minimum_loan_amount: '9.99' }, 'minimum_loan_amount'],
  ['a loan above 2,000,000.00', { maximum_loan_amount: '2000000.01' }, 'maximum_loan_amount'],
  ['a deposit above the price', { minimum_deposit: { percent: '100.01' } }, 'minimum_deposit.percent'],
  ['a deposit above 1,000,000.00', { minimum_deposit: { amount: '1000000.01' } }, 'minimum_deposit.amount'],
  ['a negative deposit', { maximum_deposit: { amount: '-0.01' } }, 'maximum_deposit.amount'],
  ['a fee above 1,000,000.00', { deferral_months: 6, settlement_fee: '1000000.01' }, 'settlement_fee'],
  ['a deferral beyond five years', { deferral_months: 61 }, 'deferral_months'],
  ['a first interval beyond five years', { first_interval_days: 1_831 }, 'first_interval_days'],
])('refuses %s', (_name, changes, field) => {
  expect(new Set(fieldsAtFault(changes))).toEqual(new Set([field]));
});
