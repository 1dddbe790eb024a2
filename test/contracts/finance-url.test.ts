import * as fc from 'fast-check';
import { refusal } from '../../contracts/errors';
import { toASCII } from 'tr46';
import {
  FINANCE_URL_PATTERN,
  financeUrlFault,
  isFinanceHost,
  quoteRequestSchema,
} from '../../contracts/quote-request';
import { bodyValidator } from '../../contracts/validate';

const HOST = /host/;
const AFTER = ['', '/', '/finance?basket=1#top', '?a=b', '#c', ':443', ':/a'];
const PATTERN = new RegExp(FINANCE_URL_PATTERN, 'u');

describe('a host is accepted', () => {
  test.each([
    'shop.example',
    'a-b.c-d.example',
    `${'a'.repeat(63)}.example`,
    `${`${'a'.repeat(61)}.`.repeat(4)}abcde`, // 253 characters
    'münchen.example',
    'MÜNCHEN.example',
    'mu\u0308nchen.example', // decomposed
    'faß.example',
    'xn--mnchen-3ya.example',
    'shop。example', // an ideographic full stop separates labels
    'ｓｈｏｐ.example',
    'مثال.example',
    '\u0915\u094d\u200d\u0937', // a joiner where Hindi needs one
    '1.2.3.4',
    '[2001:DB8::1]',
    '[::ffff:192.0.2.1]',
  ])('%s', (host) => {
    for (const after of AFTER) {
      expect(financeUrlFault(`https://${host}${after}`)).toBeNull();
      expect(`https://${host}${after}`).toMatch(PATTERN);
    }
  });
});

describe('a host is refused', () => {
  test.each([
    '.',
    'shop.example.',
    'shop..example',
    'a.\u00ad.b', // a soft hyphen is left out, and leaves nothing
    'xn--',
    'xn--a.example',
    'xn--abc-.example', // decodes to ASCII
    'ab--cd.example',
    '-shop.example',
    'sh_op.example',
    'sh%6fp.example',
    `${'a'.repeat(64)}.example`,
    `${`${'a'.repeat(61)}.`.repeat(4)}abcdef`, // 254 characters
    `${'ü'.repeat(60)}.example`,
    '\u0301a.example', // begins with a combining mark
    'a\u200db.example', // a joiner between letters that do not join
    'אa.example', // right to left and left to right in one label
    '\u{e0001}.example',
    '1.2.3.256',
    'shop.1',
    '[::g]',
    '[::1',
  ])('%s', (host) => {
    for (const after of ['', '/', '/finance?basket=1#top', '?a=b', '#c'])
      expect(financeUrlFault(`https://${host}${after}`)).toMatch(/must have a (valid host|port)/);
  });

  test.each(['', '/a', '?a', '#a', ':443'])('for want of one: https://%s', (rest) => {
    expect(financeUrlFault(`https://${rest}`)).toMatch(HOST);
  });
});

describe('a message names what is wrong', () => {
  test.each<[string, string | RegExp]>([
    ['http://shop.example/', 'must be a full URL that begins with https://.'],
    ['not a url', 'must be a full URL that begins with https://.'],
    ['https:/shop.example', 'must be a full URL that begins with https://.'],
    ['https://shop.example/a b', /character U\+0020:/],
    ['https://shop.example/\ud800', /character U\+D800:/],
    ['https://\u{1f600}.example/\u2028', /character U\+2028:/],
    ...Array.from('"<>{}|^`\\', (character): [string, RegExp] => [
      `https://shop.example/a${character}b`,
      new RegExp(`character U\\+00[0-9A-F]{2} \\(\\${character}\\):`),
    ]),
    ['https://user:secret@shop.example/', /user name or a password/],
    ['https://@shop.example/', /user name or a password/],
    ['https://shop.example:99999/', 'must have a port from 0 to 65535, or none.'],
    ['https://shop.example:-1/', 'must have a port from 0 to 65535, or none.'],
  ])('of %j', (url, message) => {
    const fault = financeUrlFault(url);
    if (typeof message === 'string') expect(fault).toBe(message);
    else expect(fault).toMatch(message);
  });

  const PATHS = ['/a@b', '?mail=a@b', '#@', ':65535', ':00443/', '/größe/ü?q=%zz&[x]=\u{1f600}'];
  test.each(['HTTPS://shop.example', ...PATHS.map((path) => `https://shop.example${path}`)])(
    'and %s has no fault',
    (url) => {
      expect(financeUrlFault(url)).toBeNull();
      expect(url).toMatch(PATTERN);
    },
  );
});

test('no white space of any script and no control character is accepted, in the host or behind it', () => {
  let tried = 0;
  for (let code = 0; code <= 0x10_ffff; code += 1) {
    const character = String.fromCodePoint(code);
    if (!/[\p{White_Space}\p{Cc}]/u.test(character)) continue;
    tried += 1;
    const name = `U+${code.toString(16).toUpperCase().padStart(4, '0')}:`;
    for (const url of [`https://sh${character}op.example/`, `https://shop.example/a${character}`]) {
      expect(financeUrlFault(url)).toContain(name);
      // Left out of the published pattern (contracts/quote-request.ts).
      if (code < 0x80 || code > 0x9f) expect(url).not.toMatch(PATTERN);
    }
  }
  expect(tried).toBe(65 + 25 - 6); // control characters and white space, six of which are both
});

test('the shortcut for plain names takes nothing that UTS 46 refuses or changes', () => {
  const label = fc.string({ unit: fc.constantFrom(...'axn019-'), minLength: 0, maxLength: 66 });
  const marks = { checkHyphens: true, checkBidi: true, checkJoiners: true };
  const strict = { ...marks, useSTD3ASCIIRules: true, verifyDNSLength: true };
  let accepted = 0;
  fc.assert(
    fc.property(fc.array(label, { minLength: 1, maxLength: 6 }), (labels) => {
      const host = labels.join('.');
      if (!isFinanceHost(host)) return;
      accepted += 1;
      expect(toASCII(host, strict)).toBe(host);
      expect(host.length).toBeLessThanOrEqual(253);
    }),
    { numRuns: 1_500 },
  );
  expect(accepted).toBeGreaterThan(100);
});

test('every published form is what the pattern says, but for the host', () => {
  const part = fc.string({ unit: fc.constantFrom(...'ax.:@/?#[]% ü"\u00a0\ud800'), maxLength: 12 });
  fc.assert(
    fc.property(part, part, (authority, rest) => {
      const url = `https://${authority}${rest}`;
      if (financeUrlFault(url) === null) expect(url).toMatch(PATTERN);
      if (!PATTERN.test(url)) expect(financeUrlFault(url)).not.toBeNull();
    }),
    { numRuns: 3_000 },
  );
});

describe('merchant_finance_url in a request', () => {
  const validate = bodyValidator(quoteRequestSchema);
  const checked = (merchant_finance_url: string) =>
    validate({ merchant_id: 'M000001', partner_id: 'P100001', loan_amount: '900.00', merchant_finance_url });
  const refused = (message: string) => ({
    violation: refusal('INVALID_REQUEST', `merchant_finance_url must ${message}`, 'merchant_finance_url'),
  });
  const page = 'https://shop.example/';

  test('has 2,048 characters at most, however many bytes they are', () => {
    for (const character of ['a', 'ü', '\u{1f600}']) {
      const longest = page + character.repeat(2_048 - page.length);
      expect(checked(longest)).toMatchObject({ value: { merchant_finance_url: longest } });
      expect(checked(longest + character)).toEqual(refused('be at most 2048 characters long.'));
    }
  });
});
