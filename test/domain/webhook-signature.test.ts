import { signEd25519, hmacSha256 } from '../../outbound/sender';
import { createHmac, randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { generateKeyPair, type KeyPair } from '../../db/endpoints/key-pairs';
import { decodeSecret, encodeSecret, signatureHeaders } from '../../domain/webhook';
import { judgePublicKeys } from '../support/webhook-receiver';

const secrets = [1, 2, 3].map(() => `whsec_${randomBytes(32).toString('base64')}`);
const [newest = '', older = ''] = secrets;
const body = '{"event_id":"evt_1","data":{"merchant_reference":"Größe £5 🧾"}}';
const now = () => Math.floor(Date.now() / 1_000);
const pairs = [generateKeyPair(), generateKeyPair()];
const MEANS = { hmac: hmacSha256, sign: signEd25519 };
const sign = (
  timestamp = now(),
  withSecrets: readonly string[] = secrets,
  keyPairs: readonly KeyPair[] = pairs,
) => signatureHeaders({ body, eventId: 'evt_1', timestamp, secrets: withSecrets, keyPairs, ...MEANS });

test('every live secret verifies the Standard Webhooks headers with the published library', () => {
  const headers = { ...sign() };
  for (const secret of secrets) expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
});

test('the published library refuses a changed body, a changed id, an old timestamp and another secret', () => {
  const webhook = new Webhook(newest);
  const headers = { ...sign() };
  expect(() => webhook.verify(body.replace('£5', '£6'), headers)).toThrow('No matching signature');
  expect(() => webhook.verify(body, { ...headers, 'webhook-id': 'evt_2' })).toThrow('No matching signature');
  expect(() => webhook.verify(body, { ...sign(now() - 301) })).toThrow('too old');
  const another = new Webhook(`whsec_${randomBytes(32).toString('base64')}`);
  expect(() => another.verify(body, headers)).toThrow('No matching signature');
});

test('the first signature is that of the newest secret, as the published library makes it', () => {
  const at = new Date('2026-11-21T12:00:00.000Z');
  const headers = sign(at.getTime() / 1_000, [newest, older]);
  const [first, second, ...asymmetric] = headers['webhook-signature'].split(' ');
  expect(first).toBe(new Webhook(newest).sign('evt_1', at, body));
  expect(second).toBe(new Webhook(older).sign('evt_1', at, body));
  expect(asymmetric.map((one) => one.slice(0, 4))).toEqual(['v1a,', 'v1a,']);
});

test('every live key pair verifies, a changed body, id or time and another key do not', () => {
  const { 'Service-Signature': _, ...headers } = sign();
  const judge = (publicKey: string | undefined, changed: object = {}, text = body) =>
    judgePublicKeys({ headers: { ...headers, ...changed }, body: text }, [publicKey ?? '']);
  for (const { publicKey } of pairs) {
    expect(judge(publicKey)).toBe('accepts');
    expect(judge(publicKey, {}, body.replace('£5', '£6'))).toBe('refuses');
    expect(judge(publicKey, { 'webhook-id': 'evt_2' })).toBe('refuses');
    expect(judge(publicKey, { 'webhook-timestamp': String(now() + 1) })).toBe('refuses');
  }
  expect(judge(generateKeyPair().publicKey)).toBe('refuses');
});

test.each([
  // Its private key is text; the public key is the one that OpenSSL makes of it.
  [
    'the library for Go of Standard Webhooks, TestAsymmetricWebhookSign',
    Buffer.from('VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=', 'base64'),
    Buffer.from('ZlN4eg7dSSqi0moX9hQUk3orrOouK3QVQSlJa248c/g=', 'base64'),
    'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}',
    'tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag==',
  ],
  [
    'RFC 8032, 7.1, test 2',
    Buffer.from('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb', 'hex'),
    Buffer.from('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c', 'hex'),
    '\u0072',
    'kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ8R2MOHsurrQwKu6wDSkWErsMAA==',
  ],
])('a published vector of Ed25519: %s', (_from, privateKey, publicKey, message, signature) => {
  const signed = signEd25519({ privateKey, publicKey }, message);
  expect(Buffer.from(signed).toString('base64')).toBe(signature);
});

test('Service-Signature holds the time and one v1 per secret: hex HMAC-SHA256 of "<t>.<body>" with the decoded key', () => {
  const timestamp = 1_795_262_400;
  const expected = [newest, older].map((secret) => {
    const hmac = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'));
    return `v1=${hmac.update(`${timestamp}.${body}`).digest('hex')}`;
  });
  expect(sign(timestamp, [newest, older])).toMatchObject({
    'Service-Signature': `t=1795262400,${expected.join()}`,
    'webhook-timestamp': '1795262400',
    'webhook-id': 'evt_1',
  });
});

test('a published vector: the Standard Webhooks example', () => {
  // From the Svix and Standard Webhooks test suites; its key has 24 bytes, so only the HMAC is held against it.
  const key = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64');
  const signed = hmacSha256(key, 'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}');
  expect(Buffer.from(signed).toString('base64')).toBe('g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

test('a secret is whsec_ and base64 of 32 bytes, both ways', () => {
  const bytes = randomBytes(32);
  expect(encodeSecret(bytes)).toBe(`whsec_${bytes.toString('base64')}`);
  expect(Buffer.from(decodeSecret(encodeSecret(bytes)))).toEqual(bytes);
  expect(() => encodeSecret(randomBytes(31))).toThrow(RangeError);
});

it.each([
  ['without its prefix', randomBytes(32).toString('base64')],
  ['of 24 bytes', `whsec_${randomBytes(24).toString('base64')}`],
  ['of 33 bytes', `whsec_${randomBytes(33).toString('base64')}`],
  ['with a space', `whsec_${randomBytes(32).toString('base64')} `],
])('a secret %s is refused without being shown', (_what, secret) => {
  const attempt = () => sign(now(), [newest, secret]);
  expect(attempt).toThrow(RangeError);
  expect(attempt).not.toThrow(secret.slice(8, 20));
});

test('nothing is signed without a secret, or without a key pair', () => {
  expect(() => sign(now(), [])).toThrow(RangeError);
  expect(() => sign(now(), secrets, [])).toThrow(RangeError);
});

it.each([
  '',
  'whsk_',
  newest,
  `whpk_${randomBytes(32).toString('base64')}`,
  generateKeyPair().privateKey.slice(5),
])('a private key that is none is refused without being shown (%#)', (privateKey) => {
  const { publicKey } = generateKeyPair();
  const attempt = () => sign(now(), secrets, [{ publicKey, privateKey }]);
  expect(attempt).toThrow('a private key must be whsk_');
  if (privateKey.length > 8) expect(attempt).not.toThrow(privateKey.slice(5, 20));
});
