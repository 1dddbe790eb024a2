import type { WebhookKeysBody } from '../../../contracts/webhook-endpoint';
import { parseKeyRing } from '../../../db/endpoints/key-ring';
import { useApi } from '../../support/api';
import { addEndpoint, newKeyRingText, setServiceClock } from '../../../testbed/notifications';
import { addPartner } from '../../support/partner-events';

const keyRing = parseKeyRing(newKeyRingText());
const api = useApi();
afterEach(() => setServiceClock(api.database, null));

async function list(key = api.keys.test) {
  const { status, text, body } = await api.get('/v1/webhook-keys', key);
  expect(status).toBe(200);
  expect(text).not.toMatch(/whsk_|whsec_|ciphertext/);
  return (body as WebhookKeysBody).data.keys;
}
const register = (partnerId: string, environment: 'sandbox' | 'live') =>
  addEndpoint(api.database, { partnerId, environment, keyRing });

test('is empty before an endpoint is registered, and has one key then, which a new address does not change', async () => {
  expect(await list()).toEqual([]);
  await register(api.partnerId, 'sandbox');
  const keys = await list();
  expect(keys).toEqual([
    {
      key_id: expect.stringMatching(/^whk_[0-9A-Z]{26}$/),
      environment: 'sandbox',
      public_key: expect.stringMatching(/^whpk_[A-Za-z0-9+/]{43}=$/),
      not_after: null,
    },
  ]);
  await register(api.partnerId, 'sandbox');
  expect(await list()).toEqual(keys);
});

test('has the keys of the caller and of the environment of its key alone', async () => {
  const another = await addPartner(api.database, 'P100002');
  await register(api.partnerId, 'live');
  await register(another.partnerId, 'sandbox');
  const lists = [await list(), await list(api.keys.live), await list(another.test), await list(another.live)];
  const environments = lists.map((keys) => keys.map((key) => key.environment).join(' '));
  expect(environments).toEqual(['sandbox', 'live', 'sandbox', '']);
  expect(new Set(lists.flat().map((key) => key.public_key)).size).toBe(3);
});
