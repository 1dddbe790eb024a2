import { liveKeyPairs } from '../../db/endpoints/key-pairs';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { useOps } from './run';

const OWNER = { partnerId: 'P100001', environment: 'live' } as const;
const LIVE = ['--partner', OWNER.partnerId, '--environment', OWNER.environment];
const ops = useOps({ partners: [OWNER.partnerId] });
const list = (...more: string[]) => ops.json('webhook-keys list', ...more);
const rotate = (...more: string[]) => ops.json('webhook-keys rotate', ...LIVE, ...more);
const register = (...more: string[]) =>
  ops.json('webhooks create', ...LIVE, '--url', 'https://partner.example/hooks', ...more);

test('there is none to rotate before an endpoint is registered, which makes it once', async () => {
  await ops.refuses(2, 'has no live key pair', 'webhook-keys rotate', ...LIVE);
  const { endpoint_id: endpointId } = await register();
  const pairs = await list();
  expect(pairs).toEqual([
    {
      webhook_key_id: expect.stringMatching(/^whk_/),
      partner_id: 'P100001',
      environment: 'live',
      public_key: expect.stringMatching(/^whpk_/),
      signs: true,
      created_at: expect.any(String),
      expires_at: null,
      sealed_with: 'test',
    },
  ]);
  const detailsOf = async (id: string) => (await ops.column('details', 'changes list --subject', id))[0];
  expect(await detailsOf(endpointId)).toMatchObject({ webhook_key_id: pairs[0].webhook_key_id });
  const replaced = await register('--replace');
  expect(await list()).toEqual(pairs);
  expect(await detailsOf(replaced.endpoint_id)).not.toHaveProperty('webhook_key_id');
});

test('two registrations at once make one', async () => {
  await ops.json('partners create --name Another --id P100002');
  const at = ['--partner', 'P100002', '--environment', 'sandbox', '--url', 'https://partner.example/hooks'];
  await Promise.all([1, 2, 3].map(() => ops.json('webhooks create', ...at, '--replace')));
  expect(await list('--partner', 'P100002')).toHaveLength(1);
});

test('rotates with an overlap of a day, writes it down, and never has more than three', async () => {
  const [old] = await list('--partner', OWNER.partnerId, '--environment', 'live');
  const added = await rotate();
  const [{ webhook_key_id: newId }, { webhook_key_id: oldId, expires_at: end }] = added.live;
  expect([newId, oldId]).toEqual([added.webhook_key_id, old.webhook_key_id]);
  const ends = Date.parse(end) - Date.now();
  expect(Math.abs(ends - 86_400_000)).toBeLessThan(600_000);
  const [change] = await ops.json('changes list --subject', added.webhook_key_id);
  expect(change).toMatchObject({
    action: 'webhook-keys.rotate',
    details: { partner_id: 'P100001', environment: 'live', overlap_seconds: 86_400 },
  });
  await rotate('--overlap', '7d');
  await ops.refuses(1, 'at most 3', 'webhook-keys rotate', ...LIVE);
  await ops.refuses(1, 'between 0 and 7 days', 'webhook-keys rotate', ...LIVE, '--overlap', '8d');
  // An earlier end stands.
  expect(await list()).toContainEqual(expect.objectContaining({ webhook_key_id: oldId, expires_at: end }));
});

test('when one leaked all old ones end at once, and people are told the public key', async () => {
  const human = await ops.text('webhook-keys rotate', ...LIVE, '--overlap', '0');
  expect(human).toMatch(/whk_\w+ to the live environment of P100001\. It signs alone\./);
  const [, publicKey] = /GET \/v1\/webhook-keys: (whpk_\S+)\n/.exec(human) ?? [];
  const all = await list('--partner', OWNER.partnerId);
  expect(all.map((one: { signs: boolean }) => one.signs)).toEqual([true, false, false, false]);
  expect(all[0].public_key).toBe(publicKey);
  const ring = parseKeyRing(ops.webhookKeys ?? '');
  const [only, ...rest] = await liveKeyPairs(ops.database.db, OWNER);
  expect(rest).toEqual([]);
  expect(only && ring.open(only, only)).toMatch(/^whsk_/);
  expect(`${human}${JSON.stringify(all)}`).not.toContain('whsk_');
});

test('two rotations at once take turns', async () => {
  const done = await Promise.all([rotate('--overlap', '1h'), rotate('--overlap', '1h')]);
  const live = (await list('--partner', OWNER.partnerId)).filter((one: { signs: boolean }) => one.signs);
  expect(live).toHaveLength(3);
  expect(live.filter((one: { expires_at: string | null }) => one.expires_at === null)).toHaveLength(1);
  expect(new Set(done.map((one) => one.webhook_key_id)).size).toBe(2);
});
