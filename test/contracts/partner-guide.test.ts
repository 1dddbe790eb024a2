import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { compileFunction } from 'node:vm';
import { testNotificationResponseSchema } from '../../contracts/test-notification';
import { encodeSecret, signatureHeaders } from '../../domain/webhook-signature';
import { hmacSha256 } from '../../outbound/hmac';

const guide = readFileSync(`${__dirname}/../../docs/partner-guide.md`, 'utf8');

/** The first block of this language that holds this text. */
function block(language: string, holding: string): string {
  const blocks = [...guide.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))];
  return blocks.map(([, code = '']) => code).find((code) => code.includes(holding)) ?? '';
}

test('the check that the guide shows accepts our signatures, and nothing else', () => {
  const code = block('js', 'function isOurs').replace(
    /import (.*) from '(.*)';/,
    "const $1 = require('$2');",
  );
  const make = compileFunction(`${code}\nreturn isOurs;`, ['require']) as (load: NodeJS.Require) => unknown;
  const isOurs = make(require) as (body: Buffer, header: string, secret: string, now: number) => boolean;

  const [newest, older, stranger] = [1, 2, 3].map(() => encodeSecret(randomBytes(32))) as [
    string,
    string,
    string,
  ];
  const body = '{"merchant_reference":"£5"}';
  const timestamp = 1_795_262_400;
  const headers = signatureHeaders({
    body,
    eventId: 'evt_1',
    timestamp,
    secrets: [newest, older],
    hmac: hmacSha256,
  });
  const check = (secret: string, { sent = body, now = timestamp } = {}) =>
    isOurs(Buffer.from(sent), headers['Service-Signature'], secret, now);

  expect([check(newest), check(older), check(newest, { now: timestamp + 299 })]).toEqual([true, true, true]);
  expect(check(stranger)).toBe(false);
  expect(check(newest, { sent: body.replace('5', '6') })).toBe(false);
  expect(check(newest, { now: timestamp + 301 })).toBe(false);
  expect(isOurs(Buffer.from(body), 'v1=00', newest, timestamp)).toBe(false);
});

test('the answer that the guide shows fits the contract', () => {
  const answer: unknown = JSON.parse(block('json', 'notification_id'));
  expect(testNotificationResponseSchema.strict().parse(answer)).toEqual(answer);
});
