import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { rotateSecret, generateWebhookSecret } from '../../db/endpoints/secrets';
import { useService } from '../support/service';
import { runDirectory } from '../../testbed/temporary-directory';
import type { Received } from '../support/webhook-receiver';
import { rotateKeyPair } from '../../db/endpoints/key-pairs';
import {
  BAD_PUBLIC_KEYS,
  BAD_SECRETS,
  forgeries,
  genuine,
  GOOD_PUBLIC_KEYS,
  GOOD_SECRETS,
  headersOf,
  keyMaterialOf,
  MESSAGE,
  NOW,
} from './forgeries';
import { describeEach, tryIn, verifyIn, type Case, type Form } from './verifiers';

// What the partner guide prints, in every language and every form of the signature: run on what the real service sends, on what nobody of
// us signed, and with what is no key.

const service = useService();
const folder = runDirectory('verifiers');
/** The secrets in the order of their lives: `next` signs beside `old`, `last` replaces both at once. */
const secrets = { old: '', next: generateWebhookSecret(), last: generateWebhookSecret() };
const publicKeys = { old: '', next: '', last: '' };
let before: Received;
let during: Received;
let after: Received;

beforeAll(async () => {
  const { endpointId, secret } = await service.register();
  secrets.old = secret;
  [publicKeys.old = ''] = await listedKeys();
  before = await receive();
  await rotate(endpointId, 3600, secrets.next);
  publicKeys.next = await rotateKeys(3600);
  expect(await listedKeys()).toEqual([publicKeys.next, publicKeys.old]);
  during = await receive();
  await rotate(endpointId, 0, secrets.last);
  publicKeys.last = await rotateKeys(0);
  expect(await listedKeys()).toEqual([publicKeys.last]);
  after = await receive();
}, 300_000);

/** Has the service send a test notification. */
async function receive(): Promise<Received> {
  const answer = await service.api.call({ path: '/v1/notifications/test?lender=lender_a' });
  const received = service.receiver.received.at(-1);
  if (answer.body.data?.status !== 'delivered' || received === undefined) throw new Error('not delivered');
  return received;
}

async function rotate(endpointId: string, overlapSeconds: number, secret: string): Promise<void> {
  const ring = parseKeyRing(service.keys);
  await service.api.database.db.transaction((tx) =>
    rotateSecret(tx, endpointId, { overlapSeconds, seal: (place) => ring.seal(secret, place) }),
  );
}

async function listedKeys(): Promise<string[]> {
  const { body } = await service.api.get('/v1/webhook-keys');
  return (body.data.keys as { public_key: string }[]).map((key) => key.public_key);
}

async function rotateKeys(overlapSeconds: number): Promise<string> {
  const { api } = service;
  const owner = { partnerId: api.partnerId, environment: 'sandbox' } as const;
  const wanted = { overlapSeconds, keyRing: parseKeyRing(service.keys) };
  return (await api.database.db.transaction((tx) => rotateKeyPair(tx, owner, wanted))).publicKey;
}

/** The test event as the partner guide shows it: its headers, its body, and the secret and public key named below it. */
function guideSample(): { received: Received; secret: string; publicKey: string } {
  const guide = readFileSync(join(__dirname, '../../docs/partner-guide.md'), 'utf8');
  const [, head = '', body = '', after = ''] =
    /```http\nPOST \S+ HTTP\/1\.1\n([^`]*service-test: true[^`]*)\n\n(\{.*\})\n```\n([\s\S]*)/.exec(guide) ??
    [];
  const headers = Object.fromEntries(head.split('\n').map((line) => line.split(': ')));
  const [secret = ''] = /whsec_[\w+/=]+/.exec(after) ?? [];
  const [publicKey = ''] = /whpk_[\w+/=]+/.exec(after) ?? [];
  const received = { headers, path: '/hooks/finance', eventId: String(headers['webhook-id']), body, atMs: 0 };
  return { received, secret, publicKey };
}

test('the test event that the partner guide shows has the headers and the fields that arrive', () => {
  const { headers, body } = guideSample().received;
  expect(Object.keys(headers)).toEqual(Object.keys(before.headers));
  for (const name of ['content-type', 'accept-encoding', 'user-agent', 'service-test', 'content-length'])
    expect([name, headers[name]]).toEqual([name, before.headers[name]]);
  const fields = (text: string) => {
    const event = JSON.parse(text);
    return [Object.keys(event), Object.keys(event.data)];
  };
  expect(fields(body)).toEqual(fields(before.body));
});

/** What a verifier says of keys that are none: each names a likely cause. */
const REFUSAL = /there is no wh|does not begin with wh|must come 32 bytes in base64/;

/** As good as another wrong key: a program starts for each, and the typed client tries them all. */
const WRONG_KEYS = [
  'the key of `undefined`',
  'the text `undefined`',
  'the prefix',
  'the text behind the prefix',
  'zeros',
];

/** Half of the bad secrets in each form, and a third of the public keys: a program starts for each, and reads both kinds in one way. */
function badLists(form: Form): [string, string | undefined][] {
  if (form === 'public keys') return BAD_PUBLIC_KEYS.filter((_, at) => at % 3 === 2);
  const half = form === 'Service-Signature' ? 1 : 0;
  return BAD_SECRETS.filter((_, at) => at % 2 === half);
}

describeEach(folder, (language, form) => {
  const isPublic = form === 'public keys';
  const known = isPublic ? publicKeys : secrets;
  const verify = ({ headers, body }: Received, keys: readonly string[], changes: Partial<Case> = {}) => {
    const now = Number(headers['webhook-timestamp']);
    return verifyIn(folder, language, { headers, body, known: keys, form, now, ...changes });
  };

  // What is older is refused among the forgeries below.
  test('verifies what arrived, five minutes after it was signed', async () => {
    const now = Number(before.headers['webhook-timestamp']) + 300;
    expect(await verify(before, [known.old], { now })).toBe('verified');
  });

  test('verifies the test event that the partner guide shows', async () => {
    const { received, secret, publicKey } = guideSample();
    expect(await verify(received, [isPublic ? publicKey : secret])).toBe('verified');
  });

  test('accepts either of two while both are alive, and neither old one afterwards', async () => {
    expect(await verify(during, [known.old])).toBe('verified');
    expect(await verify(during, [known.next])).toBe('verified');
    expect(await verify(after, [known.old, known.next])).toBe('refused');
    expect(await verify(after, [known.next, known.last])).toBe('verified');
  });

  test('throws for what is no list of keys, and does not print it', async () => {
    for (const [name, text] of badLists(form)) {
      const headers = isPublic ? genuine(form) : headersOf(MESSAGE, form, '');
      const given = { headers, body: MESSAGE.body, known: text, form, now: NOW };
      const { code, output } = await tryIn(folder, language, given);
      expect([name, code === 0, output]).toEqual([name, false, expect.stringMatching(REFUSAL)]);
      for (const part of keyMaterialOf(text))
        expect([name, output]).toEqual([name, expect.not.stringContaining(part)]);
    }
  });

  test('takes white space between keys for nothing else, and refuses what was forged', async () => {
    const spaced = (isPublic ? GOOD_PUBLIC_KEYS : GOOD_SECRETS).at(-1);
    const tried = (headers: Record<string, string>, body = MESSAGE.body) =>
      verifyIn(folder, language, { headers, body, known: spaced, form, now: NOW });
    expect(await tried(genuine(form))).toBe('verified');
    const wrong = forgeries(form).filter(({ name }) => !WRONG_KEYS.includes(name));
    for (const { name, headers, body } of wrong)
      expect([name, await tried(headers, body)]).toEqual([name, 'refused']);
  });
});
