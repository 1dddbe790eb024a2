import { generateKeyPairSync, sign } from 'node:crypto';
import { createWebhookVerifier } from '../src/webhook-verifier';

const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
const key = { public_key: `whpk_${raw.toString('base64')}` } as never;
const body = '{"event_id":"evt_1"}';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** Verifies a genuine webhook. */
function verify(webhooks: ReturnType<typeof createWebhookVerifier>) {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signature = sign(null, Buffer.from(`evt_1.${timestamp}.${body}`), privateKey).toString('base64');
  const headers = { 'webhook-id': 'evt_1', 'webhook-timestamp': timestamp };
  return webhooks.verify(body, { ...headers, 'webhook-signature': `v1a,${signature}` });
}

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
