import { PRODUCT_ROW as GOOD, useOps } from './run';

const ops = useOps({ partners: ['P100001'], merchants: ['M300001', 'M300003'] });

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
    // LibreOffice in German, with a quoted cell that would be out of place.
    const semicolons = await refused(HEAD.replaceAll(',', ';'), line('"B; 12"').replaceAll(',', ';'));
    expect(semicolons).toContain('commas, not by semicolons');
    expect(await refused(HEAD, line('1.00E+05'))).toContain('give the column the format Text');
  });
});

describe('a CSV file that a spreadsheet saved', () => {
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
    [
      '"1,000,000.00"',
      /such as 1000.00: write it without separators of thousands, and a point before the pence$/,
    ],
    ['1.000.000', /: write it without separators of thousands/],
    ['"1.355,90"', /: write it without separators of thousands/],
    ['"25\u202F000,00"', /: write it without separators of thousands/],
    ['1E+06', /: the spreadsheet has cut the number: give the column a number format and write all digits$/],
    ['£25000.00', /: write it without the currency$/],
    ['"25000,00"', /: write a point for the decimal comma$/],
    ['250.005', /^must be an amount with two decimals and nothing else, such as 1000.00$/],
  ])('is refused with the amount to write: %s', async (cell, said) => {
    const file = `${HEAD}\nM300003,Sheet,lender_a,12,9.9,250.00,${cell}\n`;
    expect(await faultsIn(file)).toEqual([[2, 'maximum_loan_amount', expect.stringMatching(said)]]);
  });

  test.each([
    ['#N/A', 'the spreadsheet shows an error there'],
    ['#NAME?', 'the spreadsheet shows an error there'],
    ['######', 'the spreadsheet shows an error there'],
    ['=B2&" 12"', 'is a formula: save the file with values instead'],
  ])('is refused as a name: %s', async (cell, said) => {
    const file = `${HEAD}\nM300003,"${cell.replaceAll('"', '""')}",lender_a,12,9.9,250.00,25000.00\n`;
    expect(await faultsIn(file)).toEqual([[2, 'credit_product', said]]);
  });

  const whole = (separator: string) => row('2027-01-31,,').replaceAll(',', separator);
  test.each<[string, string | Buffer, RegExp]>([
    ['sep=;', `sep=;\r\n${whole(';')}`, /^Line 1 \(sep=\) is for Excel alone: delete it/],
    [
      'the name of a table above',
      Buffer.from(`Products\n${whole(',')}`),
      /^Line 1 must have the field names: delete/,
    ],
    [
      'the same with its commas',
      Buffer.from(`Products,,,\n${whole(',')}`),
      /^Line 1 must have the field names: delete/,
    ],
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
