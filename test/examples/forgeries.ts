import { createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import type { Form } from './verifiers';

/**
 * What somebody without the secret may send, and what a receiver may be configured with by mistake. Each verifier is tried on all of it.
 * Nothing here is signed by our own code.
 */

const base64 = (bytes: number, fill = 7) => Buffer.alloc(bytes, fill).toString('base64');
/** The secret of the receiver, and one that it had before. `+` and `/` are in the first. */
const KEY = Buffer.from('fb+/'.repeat(10) + 'fb8=', 'base64');
export const SECRET = `whsec_${KEY.toString('base64')}`;
const OLDER = `whsec_${base64(32)}`;

const pair = () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const { x = '' } = publicKey.export({ format: 'jwk' });
  const raw = Buffer.from(x, 'base64url');
  return { raw, text: `whpk_${raw.toString('base64')}`, privateKey };
};
export const PAIR = pair();
const STRANGER = pair();
const STALE = pair();

/** What the variable with the keys contains, and means nothing; `prefix` and one key that is right otherwise. */
const badLists = (
  prefix: string,
  other: string,
  good: string,
  older: string,
): [string, string | undefined][] => {
  const bare = good.slice(prefix.length);
  return [
    ['an unset variable', undefined],
    ['an empty one', ''],
    ['a blank', ' '],
    ['line breaks and tabs', '\n\t\r\n'],
    ['a prefix alone', prefix],
    ['nothing that base64 has', '!!!!'],
    ['the same behind the prefix', `${prefix}!!!!`],
    ['what JavaScript writes for an unset variable', 'undefined'],
    ['the same behind the prefix', `${prefix}undefined`],
    ['null', 'null'],
    ['the placeholder of the page', `${prefix}…`],
    ['a variable that the shell did not replace', '${WEBHOOK_SECRET}'],
    ['no prefix', bare],
    ['another prefix', other + bare],
    ['a prefix in capitals', prefix.toUpperCase() + bare],
    ['the prefix twice', prefix + good],
    ['the version before it', `v1,${good}`],
    ['quotes around it', `"${good}"`],
    ['a comma between two', `${older},${good}`],
    ['two without a blank', `${older}${good}`],
    ['a semicolon behind it', `${good};`],
    ['16 bytes', prefix + base64(16)],
    ['31 bytes', prefix + base64(31)],
    ['33 bytes', prefix + base64(33)],
    ['64 bytes', prefix + base64(64)],
    ['the alphabet for URLs', good.replaceAll('+', '-').replaceAll('/', '_')],
    ['no padding', good.replace('=', '')],
    ['padding twice', `${good}=`],
    ['bits left over', good.replace(/.=$/, (end) => `${end === '8=' ? '9' : 'B'}=`)],
    ['hex', prefix + Buffer.from(bare, 'base64').toString('hex')],
    ['a line break within', `${good.slice(0, 20)}\n${good.slice(20)}`],
    ['a blank within', `${good.slice(0, 30)} ${good.slice(30)}`],
    ['one of two that was cut off', `${good} ${older.slice(0, -5)}`],
    ['one of two that is a prefix alone', `${prefix} ${good}`],
  ];
};

export const BAD_SECRETS = badLists('whsec_', 'whpk_', SECRET, OLDER);
/** One that contains `+` and `/`, so that each of the slips changes it. */
const SPELLED = `whpk_${'fb+/'.repeat(10)}fb8=`;
export const BAD_PUBLIC_KEYS = badLists('whpk_', 'whsec_', SPELLED, STALE.text);

/** White space around and between is nothing: an empty part of a list must not become a key. */
const spaced = (good: string, older: string) => [
  good,
  `${good} `,
  ` ${good}`,
  `${older}  ${good}`,
  ` \t${older}\n\t${good}\r\n `,
];
export const GOOD_SECRETS = spaced(SECRET, OLDER);
export const GOOD_PUBLIC_KEYS = spaced(PAIR.text, STALE.text);

/** Parts of a key that no message may contain. */
export const keyMaterialOf = (known: string | undefined): string[] =>
  (known?.match(/[A-Za-z0-9+/]{12,}/g) ?? []).filter((part) => !part.startsWith('WEBHOOK'));

export interface Message {
  readonly id: string;
  readonly timestamp: number | string;
  readonly body: string;
}
type Key = string | Buffer | KeyObject;

const ID = 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B8';
export const NOW = 1_795_262_400;
export const MESSAGE: Message = {
  id: ID,
  timestamp: NOW,
  // A shopper chooses the reference of a basket.
  body: `{"event_id":"${ID}","event_type":"credit_application.test","data":{"merchant_reference":"a.${NOW}.b"}}`,
};

/** @returns the headers of a message that was signed with the key: a secret's bytes, or a private key. */
export function headersOf({ id, timestamp, body }: Message, form: Form, key: Key): Record<string, string> {
  const content = form === 'Service-Signature' ? `${timestamp}.${body}` : `${id}.${timestamp}.${body}`;
  const standard = (signature: string) => ({
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signature,
  });
  if (form === 'public keys')
    return standard(`v1a,${sign(null, Buffer.from(content), key).toString('base64')}`);
  const hmac = createHmac('sha256', key).update(content);
  return form === 'Service-Signature'
    ? { 'service-signature': `t=${timestamp},v1=${hmac.digest('hex')}` }
    : standard(`v1,${hmac.digest('base64')}`);
}

export const genuineKey = (form: Form): Key => (form === 'public keys' ? PAIR.privateKey : KEY);
/** As it was signed. */
export const genuine = (form: Form) => headersOf(MESSAGE, form, genuineKey(form));

export interface Forgery {
  readonly name: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** What a verifier whose keys are right refuses. */
export function forgeries(form: Form): Forgery[] {
  const { body } = MESSAGE;
  const signed = (name: string, key: Key, message = MESSAGE) => ({
    name,
    headers: headersOf(message, form, key),
    body: message.body,
  });
  const changed = (name: string, headers: Record<string, string>, changedBody = body) => ({
    name,
    headers: { ...genuine(form), ...headers },
    body: changedBody,
  });
  const service = form === 'Service-Signature';
  const standard = (text: string) => ({ 'webhook-signature': text });
  // The parts of what is signed, divided at another point: the id takes in the time of signing, and the body begins later.
  const [head = '', tail = ''] = body.split(`.${NOW}.`);
  const own = genuine(form);
  const [, value = ''] = (own['webhook-signature'] ?? '').split(',');
  return [
    signed('an old event', genuineKey(form), { ...MESSAGE, timestamp: NOW - 301 }),
    signed('one from the future', genuineKey(form), { ...MESSAGE, timestamp: NOW + 301 }),
    signed('a time that is no number', genuineKey(form), { ...MESSAGE, timestamp: 'NaN' }),
    changed('a changed body', {}, body.replace('test', 'paid')),
    changed('a line break behind the body', {}, `${body}\n`),
    ...(form === 'public keys'
      ? [
          signed("a stranger's key", STRANGER.privateKey),
          changed('the public key as a secret', headersOf(MESSAGE, 'Standard Webhooks', PAIR.raw)),
          changed('the same with its version', {
            ...standard(
              headersOf(MESSAGE, 'Standard Webhooks', PAIR.raw)['webhook-signature']?.replace(
                'v1,',
                'v1a,',
              ) ?? '',
            ),
          }),
        ]
      : [
          signed('an empty key', ''),
          signed('the key of `undefined`', Buffer.from('undefined', 'base64')),
          signed('the text `undefined`', 'undefined'),
          signed('the prefix', 'whsec_'),
          signed('the text of the secret', SECRET),
          signed('the text behind the prefix', SECRET.slice(6)),
          signed('zeros', Buffer.alloc(32)),
        ]),
    ...(service
      ? [
          changed('another time', {
            'service-signature': own['service-signature']?.replace(/t=\d+/, `t=${NOW - 1}`) ?? '',
          }),
          changed('half a signature', { 'service-signature': own['service-signature']?.slice(0, -32) ?? '' }),
          changed('no signature', { 'service-signature': `t=${NOW}` }),
          changed('an empty one', { 'service-signature': `t=${NOW},v1=` }),
        ]
      : [
          changed('another time', { 'webhook-timestamp': String(NOW - 1) }),
          changed('another id', { 'webhook-id': ID.replace('B8', 'B9') }),
          changed('no id', { 'webhook-id': '' }),
          changed('half a signature', standard(own['webhook-signature']?.slice(0, -20) ?? '')),
          changed('no signature', standard('')),
          changed('an empty one', standard('v1, v1a,')),
          changed("another version's", standard(`${form === 'public keys' ? 'v1' : 'v1a'},${value}`)),
          changed('what was signed, divided elsewhere', { 'webhook-id': `${ID}.${NOW}.${head}` }, tail),
        ]),
  ];
}
