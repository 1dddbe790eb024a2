import { goodQuote } from '../../testbed/values';
import { expectBad, expectRefusal, hostileTarget, LISTENERS } from './raw';
import { gzipSync } from 'node:zlib';

const target = hostileTarget();

const good = JSON.stringify(goodQuote);
/** A good body with this text in place of a field's value. */
const withRaw = (field: string, raw: string, body: object = goodQuote) =>
  JSON.stringify({ ...body, [field]: '@@' }).replace('"@@"', () => raw);
const post = (body: string | Buffer, headers: string[] = [], without: string[] = []) =>
  target.send({ body, headers, without });

describe('lone halves of surrogate pairs', () => {
  const fields = ['merchant_id', 'partner_id', 'loan_amount', 'customer_deposit', 'merchant_finance_url'];

  test.each([...fields, 'merchant_reference'])(
    'in %s are refused, as escapes and as raw bytes',
    async (field) => {
      const honest = JSON.stringify((goodQuote as Record<string, unknown>)[field] ?? 'ref').slice(1, -1);
      for (const part of ['\\ud800', 'a\\udfffb', '\\udc00\\ud800'])
        for (const raw of [part, honest + part, part + honest])
          expectBad(await post(withRaw(field, `"${raw}"`)));
      const [before = '', after = ''] = withRaw(field, '"a@b"').split('@');
      for (const half of [
        [0xed, 0xa0, 0x80],
        [0xed, 0xbf, 0xbf],
        [0xed, 0xa0, 0x80, 0xed, 0xb0, 0x80],
      ])
        expectBad(await post(Buffer.concat([Buffer.from(before), Buffer.from(half), Buffer.from(after)])));
    },
  );

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

test('a field with a name of JavaScript is ignored like any other, and a prototype cannot bring the fields', async () => {
  expectBad(await post(`{"__proto__":${good}}`));
  for (const name of ['constructor', 'toString', 'hasOwnProperty', 'toJSON', 'then', 'valueOf', 'length', ''])
    expect(await post(`${good.slice(0, -1)},"${name}":"x"}`)).toMatchObject({ status: 200 });
});

describe('numbers and digits', () => {
  // Plain mistakes are in test/api/finance-quote.test.ts.
  test.each<[string, string[]]>([
    [
      'loan_amount',
      ['1e400', '-0', '1e-400', '"1e1"', '"0x10"', '"１００"', '"900\\u0000"', '"\\ufeff900.00"'],
    ],
    ['loan_amount', ['"−900"', '"Infinity"', '["900.00"]', '{"toString":"900.00"}']],
    ['customer_deposit', ['1e400', '-0.001', '"-0"', '1e12', '"1e1"', 'false']],
    ['merchant_id', ['"M１２３４５６"', '"M000001\\u0000"', '{"$ne":null}']],
    [
      'merchant_finance_url',
      ['"https://shop.example/\\u0000"', '"https://shop.example/\\r\\nSet-Cookie: a=b"'],
    ],
    ['merchant_reference', ['"a\\u0000b"', '"ｂａｓｋｅｔ"', '"a\\u202eb"', '"\'; drop table quotes; --"']],
  ])('%s of %j is refused', async (field, values) => {
    for (const raw of values) {
      const answer = await post(withRaw(field, raw));
      expectBad(answer);
      expect(answer?.body.error.details).toEqual({ field });
    }
  });

  test('a loan may be far too high, or have far too many decimals', async () => {
    for (const raw of ['1e308', '9'.repeat(300), `"${'9'.repeat(5_000)}"`, '1e12'])
      expectRefusal(await post(withRaw('loan_amount', raw)), 422, 'AMOUNT_TOO_HIGH');
    for (const raw of [`0.${'0'.repeat(300)}1`, `"0.${'0'.repeat(5_000)}"`, '900.0000000001', '5e-324'])
      expectRefusal(await post(withRaw('loan_amount', raw)), 400, 'INVALID_AMOUNT_FORMAT');
  });

  test('1e1 is JSON for ten pounds, and 900.000 for nine hundred', async () => {
    for (const raw of ['1e1', '9E2', '900.000', '0.9e3'])
      expect(await post(withRaw('loan_amount', raw))).toMatchObject({ status: 200 });
  });

  test('the highest deposit there can be is priced exactly', async () => {
    const answer = await post(withRaw('customer_deposit', '"999999999999.99"'));
    expect(answer?.status).toBe(200);
    for (const { purchase_price } of answer?.body.data.products ?? [])
      expect(purchase_price).toBe('1000000000899.99');
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
    for (const size of [10_000_000, 2 ** 40, Number.MAX_SAFE_INTEGER])
      expectBad(await post('', [`Content-Length: ${size}`], ['content-length']));
  });
});

test('a URL with all that it may hold stays text in the summary', async () => {
  const url =
    "https://münchen.example:8443/(größe)/%zz/%?a='b'&amp;lt;c=!*@$,;~[]&d=\u{1f600}#'onload='alert(1)";
  const answer = await target.api.quote({ merchant_finance_url: url });
  expect(answer.status).toBe(200);
  const { finance_offer_summary: summary } = answer.body.data.summary;
  expect(summary).toMatch(/^[^<>"&']+<a href="[^<>"']*">Learn more<\/a>$/);
});

/** Bodies that are no JSON object, made from a good one. */
function notJson(good: string): [what: string, body: string | Buffer][] {
  const raw = (field: string, text: string) => withRaw(field, text, JSON.parse(good) as object);
  return [
    ['nothing', ''],
    ['a cut object', good.slice(0, -1)],
    ['a trailing comma', `${good.slice(0, -1)},}`],
    ['a trailing NUL', `${good}\0`],
    ['NaN', raw('loan_amount', 'NaN')],
    ['full-width digits as a number', raw('loan_amount', '９００')],
    ['a raw NUL in a text', raw('merchant_reference', '"a\0b"')],
    ['a byte order mark', `\ufeff${good}`],
    ['UTF-16', Buffer.from(good, 'utf16le')],
    ['Latin-1', Buffer.from(raw('merchant_reference', '"caf\u00e9"'), 'latin1')],
    ['a lone continuation byte', Buffer.concat([Buffer.from(good), Buffer.from([0x80])])],
    ['random bytes', Buffer.from(Array.from({ length: 512 }, (_, at) => (at * 167 + 13) % 256))],
    ['gzip', gzipSync(good)],
    ['an array', `[${good}]`],
    ['8,000 nested arrays', '['.repeat(8_000) + ']'.repeat(8_000)],
    ['a text', JSON.stringify(good)],
    ['a number', '1e400'],
    ['null', 'null'],
    ['a form', 'merchant_id=M000001&partner_id=P100001'],
  ];
}

describe.each(LISTENERS)('on the %s listener', (listener) => {
  const send = (body: string | Buffer) => target.send({ body }, listener);

  test.each(notJson(good).map(([what], at) => [what, at] as const))('%s is refused', async (_what, at) => {
    expectBad(await send(notJson(target.requests[listener].body)[at]?.[1] ?? good));
  });

  test('no body, a byte order mark and an encoding other than UTF-8 are named', async () => {
    const { body } = target.requests[listener];
    const said = async (sent: string | Buffer) => (await send(sent))?.body.error.message;
    expect(await said('')).toContain('The body is empty');
    const none = await target.send({ body: '', without: ['content-type', 'content-length'] }, listener);
    expect(none?.body.error.message).toContain('The body is empty');
    expect(await said(`\ufeff${body}`)).toContain('begins with a byte order mark');
    expect(await said(Buffer.from(`\ufeff${body}`, 'utf16le'))).toContain('send JSON in UTF-8');
  });

  test('names with a meaning to JavaScript and fields that stand there twice are refused', async () => {
    const { body } = target.requests[listener];
    for (const extra of [
      '{"__proto__":{"loan_amount":"900.00"}}',
      '{"a":[{"b":{"__proto__":null}}]}',
      '{"constructor":{"prototype":{"polluted":true}}}',
      '{"loan_amount":"900.00"}',
      '{"loan\\u005famount":"5.00"}',
    ]) {
      const answer = await send(`${body.slice(0, -1)},${extra.slice(1)}`);
      expectBad(answer);
      // It is valid JSON, and the answer says what else is wrong.
      const { message, details } = answer?.body.error ?? {};
      expect(message).toMatch(extra.includes('proto') ? /__proto__/ : /twice/);
      if (/twice/.test(message)) expect(details).toEqual({ field: 'loan_amount' });
    }
  });

  test('16 KiB are read, and a byte more is too large', async () => {
    const { body } = target.requests[listener];
    expect(await send(body.padEnd(16 * 1024, ' '))).toMatchObject({ status: 200 });
    const answer = await send(body.padEnd(16 * 1024 + 1, ' '));
    expectBad(answer);
    expect(answer?.body.error.message).toContain('16 KiB');
  });
});
