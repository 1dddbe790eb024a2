import { PRODUCT_ROW as GOOD, useOps } from './run';

const ops = useOps({ partners: ['P100001'], merchants: ['M300002', 'M300003'] });

describe('a name', () => {
  const named = (...names: (string | [name: string, active: boolean])[]) =>
    names.map((one) => {
      const [credit_product, active] = typeof one === 'string' ? [one, true] : one;
      return { ...GOOD, merchant_id: 'M300002', credit_product, active };
    });

  test.each([
    ['Classic\u200b 12', 'must not contain characters that show nothing (U+200B at character 8)'],
    ['\u200b', 'must not contain characters that show nothing (U+200B at character 1)'],
    ['\u202e21 cissalC', 'must not contain characters that show nothing (U+202E at character 1)'],
    ['a\u3164', 'must not contain characters that show nothing (U+3164 at character 2)'],
    ['1\ufe0f2 months', 'must not contain characters that show nothing (U+FE0F at character 2)'],
    ['\u{1f6cb}\u200d12', 'must not contain characters that show nothing (U+200D at character 2)'],
    ['Classic\u00a012', 'must not contain white space other than single spaces (U+00A0 at character 8)'],
    [
      'Caf\u00c3\u00a9',
      'was read in the wrong character set ("\u00c3\u00a9" in it): open and save the file as UTF-8',
    ],
    [
      '0 % \u00e2\u20ac\u201c 6',
      'was read in the wrong character set ("\u00e2\u20ac\u201c" in it): open and save the file as UTF-8',
    ],
    ['Caf\ufffd', 'was read in the wrong character set ("\ufffd" in it): open and save the file as UTF-8'],
    ['\u{1f6cb} a  b', 'must not contain two spaces in a row (U+0020 at character 5)'],
  ])('with what nobody sees is refused, naming code point and position: %j', async (name, message) => {
    expect(await ops.importFaults('products', named(name))).toEqual([`1 credit_product ${message}`]);
    expect(await ops.importFaults('merchants', [{ merchant_id: 'M300009', trading_name: name }])).toEqual([
      `1 trading_name ${message}`,
    ]);
    await ops.refuses(1, `The name ${message}`.replaceAll(/[+()]/g, '.'), 'partners create --name', name);
    const format = ['--reference-format', '\\d{9}'];
    await ops.refuses(1, /The name (must not|was read)/, 'lenders create lender_n --name', name, ...format);
  });

  test('with emoji or accents is taken, and stored in one form', async () => {
    const names = [
      'Sofa \u{1f6cb}\ufe0f',
      '\u{1f469}\u{1f3fd}\u200d\u{1f4bb} 12',
      '\u2764\ufe0f\u200d\u{1f525}',
      '1\ufe0f\u20e3 Cafe\u0301',
      '\u201cCAF\u00c9\u201d \u00a31 S\u00c3O \u00c2\u20ac',
    ];
    expect((await ops.import('products', named(...names))).json()).toMatchObject({ created: 5 });
    expect(await ops.column('credit_product', 'products list --merchant M300002')).toEqual(
      names.map((name) => name.normalize('NFC')),
    );
    // The same file again changes nothing.
    expect((await ops.import('products', named(...names))).json()).toMatchObject({ unchanged: 5 });
    const [last = ''] = names.slice(-1);
    expect(await ops.importFaults('products', named(last, last.normalize('NFC')))).toEqual([
      '2 credit_product is the same as in row 1',
    ]);
  });

  test('that looks like that of another active product is refused, in the file and beside it', async () => {
    expect(
      await ops.importFaults('products', named('Straße 12', 'STRASSE 12', 'Other', 'ｏｔｈｅｒ')),
    ).toEqual([
      '2 credit_product looks like the one in row 1, "Straße 12"',
      '4 credit_product looks like the one in row 3, "Other"',
    ]);
    expect((await ops.import('products', named('Straße 12'))).json()).toMatchObject({ created: 1 });
    expect(await ops.importFaults('products', named('strasse 12'))).toEqual([
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
