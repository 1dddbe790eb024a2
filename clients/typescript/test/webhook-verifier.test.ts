import { generateKeyPairSync, sign } from 'node:crypto';
import { verifyWebhook } from '../src/verify-webhook';
import { createWebhookVerifier } from '../src/webhook-verifier';

const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
const publicText = `whpk_${raw.toString('base64')}`;
const key = { public_key: publicText } as never;
const body = '{"event_id":"evt_1"}';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** Those of a genuine webhook. */
function signedHeaders() {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signature = sign(null, Buffer.from(`evt_1.${timestamp}.${body}`), privateKey).toString('base64');
  return { 'webhook-id': 'evt_1', 'webhook-timestamp': timestamp, 'webhook-signature': `v1a,${signature}` };
}

const verify = (webhooks: ReturnType<typeof createWebhookVerifier>) => webhooks.verify(body, signedHeaders());

test('a reading of the keys that never ends, as that of a request that a Worker of Cloudflare abandoned, is begun again', async () => {
  let calls = 0;
  const webhooks = createWebhookVerifier({
    listWebhookKeys: () =>
      (calls += 1) === 1 ? new Promise<never>(() => undefined) : Promise.resolve([key]),
  });
  void verify(webhooks);
  const later = [verify(webhooks), verify(webhooks)];
  await jest.advanceTimersByTimeAsync(7_000);
  expect(calls).toBe(2);
  expect(await Promise.all(later)).toMatchObject([{ event_id: 'evt_1' }, { event_id: 'evt_1' }]);
  expect(await verify(webhooks)).toMatchObject({ event_id: 'evt_1' });
  expect(calls).toBe(2);
  expect(jest.getTimerCount()).toBe(0);
});

const bytes = new TextEncoder().encode(body);

test.each([
  ['text', body],
  ['bytes', bytes],
  ['a part of a buffer', Buffer.from(`  ${body}`).subarray(2)],
  ['an ArrayBuffer', bytes.buffer],
])('a body is verified as %s', async (_, given) => {
  expect(await verifyWebhook(given, signedHeaders(), publicText)).toEqual({ event_id: 'evt_1' });
});

test.each([
  ['an object, as a parser leaves it', JSON.parse(body), /was it parsed already/],
  ['nothing, as without a parser', undefined, /or never read/],
  ['base64, as AWS Lambda passes it', Buffer.from(body).toString('base64'), /is it still in base64/],
  ['other JSON', '{"event_id":"evt_2"}', /^no signature fits a key$/],
])('a body is refused with its cause that is %s', async (_, given, message) => {
  const refused = verifyWebhook(given as never, signedHeaders(), publicText);
  await expect(refused).rejects.toMatchObject({
    reason: 'signature',
    message: expect.stringMatching(message),
  });
});
