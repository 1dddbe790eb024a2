import { gzipSync } from 'node:zlib';
import { goodQuote } from '../support/api';
import { expectBad, hostileTarget, LISTENERS } from './raw';

const target = hostileTarget();

const good = JSON.stringify(goodQuote);

/** Bodies that are no JSON object, made from a good one. */
function notJson(good: string): [what: string, body: string | Buffer][] {
  const raw = (field: string, text: string) =>
    JSON.stringify({ ...(JSON.parse(good) as object), [field]: '@@' }).replace('"@@"', () => text);
  return [
    ['nothing', ''],
    ['white space', ' \t\r\n'],
    ['a cut object', good.slice(0, -1)],
    ['a trailing comma', `${good.slice(0, -1)},}`],
    ['two objects', good + good],
    ['trailing garbage', `${good}x`],
    ['a trailing NUL', `${good}\0`],
    ['single quotes', good.replaceAll('"', "'")],
    ['names without quotes', '{merchant_id:"M000001"}'],
    ['NaN', raw('loan_amount', 'NaN')],
    ['a number with a leading zero', raw('loan_amount', '0900')],
    ['a hexadecimal number', raw('loan_amount', '0x384')],
    ['full-width digits as a number', raw('loan_amount', '９００')],
    ['a raw NUL in a text', raw('merchant_reference', '"a\0b"')],
    ['a raw line break in a text', raw('merchant_reference', '"a\nb"')],
    ['half an escape', raw('merchant_reference', '"\\u12"')],
    ['an unknown escape', raw('merchant_reference', '"\\x41"')],
    ['a byte order mark', `\ufeff${good}`],
    ['UTF-16', Buffer.from(good, 'utf16le')],
    ['Latin-1', Buffer.from(raw('merchant_reference', '"caf\u00e9"'), 'latin1')],
    ['UTF-8 that is too long for its character', Buffer.from([0x7b, 0xc0, 0xa2, 0x7d])],
    ['a lone continuation byte', Buffer.concat([Buffer.from(good), Buffer.from([0x80])])],
    ['random bytes', Buffer.from(Array.from({ length: 512 }, (_, at) => (at * 167 + 13) % 256))],
    ['gzip', gzipSync(good)],
    ['8,000 opened arrays', '['.repeat(8_000)],
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

  test('names with a meaning to JavaScript and fields that stand there twice are refused', async () => {
    const { body } = target.requests[listener];
    for (const extra of [
      '{"__proto__":{"loan_amount":"900.00"}}',
      '{"a":[{"b":{"__proto__":null}}]}',
      '{"constructor":{"prototype":{"polluted":true}}}',
      '{"loan_amount":"900.00"}',
    ]) {
      const answer = await send(`${body.slice(0, -1)},${extra.slice(1)}`);
      expectBad(answer);
      // It is valid JSON, and the answer says what else is wrong.
      expect(answer?.body.error.message).toMatch(extra.includes('proto') ? /__proto__/ : /twice/);
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
