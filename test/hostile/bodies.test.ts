import { goodQuote } from '../support/api';
import { expectBad, expectRefusal, hostileTarget, titled } from './raw';

const target = hostileTarget();

const good = JSON.stringify(goodQuote);
/** A good body with this text in place of a field's value. */
const withRaw = (field: string, raw: string) =>
  JSON.stringify({ ...goodQuote, [field]: '@@' }).replace('"@@"', () => raw);
const post = (body: string | Buffer, headers: string[] = [], without: string[] = []) =>
  target.send({ body, headers, without });

describe('lone halves of surrogate pairs', () => {
  const fields = ['merchant_id', 'partner_id', 'loan_amount', 'customer_deposit', 'merchant_finance_url'];
  const places = { prefix: '\\ud800', middle: 'a\\udfffb', alone: '\\ud800', swapped: '\\udc00\\ud800' };

  test.each([...fields, 'merchant_reference'])('as escapes in %s are refused', async (field) => {
    const honest = JSON.stringify((goodQuote as Record<string, unknown>)[field] ?? 'ref').slice(1, -1);
    for (const part of Object.values(places)) {
      for (const raw of [`"${part}"`, `"${honest}${part}"`, `"${part}${honest}"`]) {
        expectBad(await post(withRaw(field, raw)));
      }
    }
  });

  test.each([...fields, 'merchant_reference'])('as raw bytes in %s are refused', async (field) => {
    const [before = '', after = ''] = withRaw(field, '"a@b"').split('@');
    for (const half of [
      [0xed, 0xa0, 0x80],
      [0xed, 0xbf, 0xbf],
      [0xed, 0xa0, 0x80, 0xed, 0xb0, 0x80],
    ]) {
      const body = Buffer.concat([Buffer.from(before), Buffer.from(half), Buffer.from(after)]);
      expectBad(await post(body));
    }
  });

  test('in a name that is there twice come back as valid JSON', async () => {
    const names = ['\\ud800', `${'a'.repeat(63)}\\ud83d\\ude00`];
    for (const name of names) {
      const answer = await post(`{"${name}":1,"${name}":2}`);
      expectBad(answer);
      expect(answer?.body.error.details.field.length).toBeLessThanOrEqual(64);
    }
  });

  test('in a field nobody reads do no harm', async () => {
    expect(await post(`${good.slice(0, -1)},"note":"\\ud800\\u0000"}`)).toMatchObject({ status: 200 });
  });
});

describe('names with a meaning to JavaScript', () => {
  test('a prototype cannot bring the fields', async () => {
    expectBad(await post(`{"__proto__":${good}}`));
  });

  test.each(['constructor', 'toString', 'hasOwnProperty', 'toJSON', 'then', 'valueOf', 'length', ''])(
    'a field called %p is ignored like any other',
    async (name) => {
      expect(await post(`${good.slice(0, -1)},${JSON.stringify(name)}:"x"}`)).toMatchObject({ status: 200 });
    },
  );
});

describe('numbers and digits', () => {
  test.each([
    ['loan_amount', '1e400'],
    ['loan_amount', '9'.repeat(400)],
    ['loan_amount', '-0'],
    ['loan_amount', '1e-400'],
    ['loan_amount', '"1e1"'],
    ['loan_amount', '"0x10"'],
    ['loan_amount', '"１００"'],
    ['loan_amount', '"900\\u0000"'],
    ['loan_amount', '"\\ufeff900.00"'],
    ['loan_amount', '"−900"'],
    ['loan_amount', '"Infinity"'],
    ['loan_amount', '["900.00"]'],
    ['loan_amount', '{"toString":"900.00"}'],
    ['customer_deposit', '1e400'],
    ['customer_deposit', '-0.001'],
    ['customer_deposit', '"-0"'],
    ['customer_deposit', '1e12'],
    ['customer_deposit', '"1e1"'],
    ['customer_deposit', 'false'],
    ['merchant_id', '"M１２３４５６"'],
    ['merchant_id', '"M000001\\u0000"'],
    ['merchant_id', '{"$ne":null}'],
    ['partner_id', '"P100001\\n"'],
    ['merchant_finance_url', '"https://shop.example/\\u0000"'],
    ['merchant_finance_url', '"https://shop.example/\\r\\nSet-Cookie: a=b"'],
    ['merchant_reference', '"a\\u0000b"'],
    ['merchant_reference', '"ｂａｓｋｅｔ"'],
    ['merchant_reference', '"a\\u202eb"'],
    ['merchant_reference', '""; drop table quotes; --"'.replace('""', '"\'')],
  ])('%s: %s is refused', async (field, raw) => {
    const answer = await post(withRaw(field, raw));
    expectBad(answer);
    expect(answer?.body.error.details).toEqual({ field });
  });

  test.each(titled(['1e308', '9'.repeat(300), `"${'9'.repeat(5_000)}"`, '1e12']))(
    'a loan of %s is too high',
    async (_title, raw) => {
      expectRefusal(await post(withRaw('loan_amount', raw)), 422, 'AMOUNT_TOO_HIGH');
    },
  );

  test.each(titled([`0.${'0'.repeat(300)}1`, `"0.${'0'.repeat(5_000)}"`, '900.0000000001', '5e-324']))(
    'a loan of %s has too many decimals',
    async (_title, raw) => {
      expectRefusal(await post(withRaw('loan_amount', raw)), 400, 'INVALID_AMOUNT_FORMAT');
    },
  );

  test('1e1 is JSON for ten pounds, and 900.000 for nine hundred', async () => {
    for (const raw of ['1e1', '9E2', '900.000', '0.9e3']) {
      expect(await post(withRaw('loan_amount', raw))).toMatchObject({ status: 200 });
    }
  });

  test('the highest deposit there can be is priced exactly', async () => {
    const answer = await post(withRaw('customer_deposit', '"999999999999.99"'));
    expect(answer?.status).toBe(200);
    for (const { purchase_price } of answer?.body.data.products ?? []) {
      expect(purchase_price).toBe('1000000000899.99');
    }
  });
});

describe('size and depth', () => {
  test('nesting up to the size of a body is read and ignored', async () => {
    const deep = `${good.slice(0, -1)},"x":${'['.repeat(7_900)}${']'.repeat(7_900)}}`;
    expect(await post(deep)).toMatchObject({ status: 200 });
    expectRefusal(await post(withRaw('merchant_id', '['.repeat(7_900) + ']'.repeat(7_900))), 400);
    const poisoned = `${'{"a":'.repeat(2_500)}{"__proto__":1}${'}'.repeat(2_500)}`;
    expectBad(await post(poisoned));
  });

  test('thousands of fields, also of one name', async () => {
    const many = Array.from({ length: 1_500 }, (_, at) => `"f${at}":0`).join();
    expect(await post(`${good.slice(0, -1)},${many}}`)).toMatchObject({ status: 200 });
    expectBad(await post(`{${'"a":1,'.repeat(2_000)}"a":1}`));
  });

  test('an announced size is refused before it is sent', async () => {
    for (const size of [10_000_000, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
      const answer = await post('', [`Content-Length: ${size}`], ['content-length']);
      expectBad(answer);
    }
  });
});

describe('text that others may run', () => {
  test('a URL with all that it may hold stays text in the summary', async () => {
    const url =
      "https://münchen.example:8443/(größe)/%zz/%?a='b'&amp;lt;c=!*@$,;~[]&d=\u{1f600}#'onload='alert(1)";
    const answer = await target.api.quote({ merchant_finance_url: url });
    expect(answer.status).toBe(200);
    const { finance_offer_summary: summary } = answer.body.data.summary;
    expect(summary).toMatch(/^[^<>"&']+<a href="[^<>"']*">Learn more<\/a>$/);
  });
});
