import { randomBytes } from 'node:crypto';
import { liveKeyPairs } from '../../db/endpoints/key-pairs';
import { liveSecrets } from '../../db/endpoints/secrets';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { until } from '../../testbed/until';
import { attempt } from '../support/partner-events';
import { DELIVERED, FAILED } from '../../testbed/values';
import { useOps } from './run';
import { holdQueued } from '../../db/notifications/hold';
import type { DeliveryOutcome } from '../../domain/delivery-outcome';
import { storeStatus } from '../../testbed/notifications';

const URL_A = 'https://partner.example/hooks';
const LANE = { partnerId: 'P100004', environment: 'live' } as const;
const ops = useOps({ partners: ['P100001', 'P100002', 'P100003', LANE.partnerId, 'P100005'] });
const NAMED = ['--partner', LANE.partnerId, '--environment', LANE.environment];
let endpointId: string;
beforeAll(async () => {
  ({ endpoint_id: endpointId } = await register(LANE.partnerId));
});

const live = (partner: string) => ['--partner', partner, '--environment', 'live'];
const register = (partner: string, ...more: string[]) =>
  ops.json('webhooks create', ...live(partner), '--url', URL_A, ...more);
/** What deliveries of an endpoint are signed with, newest first. */
const opened = async (endpointId: string) => {
  const ring = parseKeyRing(ops.webhookKeys ?? '');
  return (await liveSecrets(ops.database.db, endpointId)).map((sealed) => ring.open(sealed, sealed));
};
const changesOf = (subject: string) => ops.json('changes list --subject', subject);

test('registers, shows the secret once, and replaces only when told to, with a new secret', async () => {
  const first = await register('P100001');
  expect(first).toMatchObject({
    endpoint_id: expect.stringMatching(/^whe_/),
    url: URL_A,
    state: 'active',
    secret: expect.stringMatching(/^whsec_/),
    notice: expect.stringContaining('shown once'),
  });
  expect(await opened(first.endpoint_id)).toEqual([first.secret]);

  const again = ['webhooks', 'create', ...live('P100001'), '--url', 'https://other.example/'];
  await ops.refuses(1, '--replace', ...again);
  const human = await ops.text(...again, '--replace');
  const secret = /\n {2}(whsec_\S{44})\n/.exec(human)?.[1];
  expect(human).toContain(`in place of ${first.endpoint_id}`);
  const [now] = await ops.json('webhooks list --partner P100001');
  expect(now).toMatchObject({ url: 'https://other.example/' });
  expect(await opened(now.endpoint_id)).toEqual([secret]);
  expect(secret).not.toBe(first.secret);
  expect(await ops.json('webhooks list --partner P100001 --removed')).toHaveLength(2);

  const everything = JSON.stringify([
    await ops.json('changes list'),
    await ops.json('webhooks show', now.endpoint_id),
    await ops.json('webhooks secrets list', first.endpoint_id),
  ]);
  expect(everything).not.toContain('whsec_');
  expect(await changesOf(now.endpoint_id)).toMatchObject([
    { action: 'webhooks.create', details: { replaced: first.endpoint_id, environment: 'live' } },
  ]);
});

test('refuses a URL that webhooks may not go to, and stores nothing', async () => {
  for (const url of ['http://partner.example/', 'https://partner.example:8443/', 'https://127.0.0.1/'])
    await ops.refuses(1, /^error: The URL/, 'webhooks create', ...live('P100002'), '--url', url);
  expect(await ops.json('webhooks list --partner P100002')).toEqual([]);
});

test('rotates a secret with an overlap, lists who signs, and stops at three', async () => {
  const { endpoint_id: id, secret } = await register('P100003');
  const second = await ops.json('webhooks secrets rotate', id, '--overlap', '2d');
  expect(await opened(id)).toEqual([second.secret, secret]);
  const listed = await ops.json('webhooks secrets list', ...live('P100003'));
  expect(listed).toMatchObject([
    { secret_id: second.secret_id, signs: true, expires_at: null },
    { signs: true, expires_at: expect.any(String) },
  ]);
  const leftMs = new Date(listed[1].expires_at).getTime() - new Date(listed[0].created_at).getTime();
  expect(Math.round(leftMs / 3_600_000)).toBe(48);

  expect(await ops.text('webhooks secrets rotate', id)).toMatch(/Older ones sign on until .*\n\n {2}whsec_/);
  await ops.refuses(1, 'at most 3', 'webhooks secrets rotate', id);
  await ops.refuses(1, '', 'webhooks secrets rotate', id, '--overlap', '8d');
  const alone = await ops.json('webhooks secrets rotate', id, '--overlap', '0');
  expect(await opened(id)).toEqual([alone.secret]);
  expect(alone.live).toHaveLength(1);
  const rotations = ['secrets.rotate', 'secrets.rotate', 'secrets.rotate', 'create'];
  expect(await ops.actionsOn(id)).toEqual(rotations.map((verb) => `webhooks.${verb}`));
  expect(JSON.stringify(await changesOf(id))).not.toContain('whsec_');
});

test('sends a test as the API does: a place in the month, an event, an entry in the log', async () => {
  await register('P100003', '--replace');
  const sent = await ops.json('webhooks test', ...live('P100003'), '--lender', 'lender_b');
  const [row] = await ops.database.sql`
    select state, event_id, event_type, body from notifications_now where notification_id = ${sent.notification_id}`;
  const type = 'credit_application.test';
  expect(row).toMatchObject({ state: 'queued', event_id: sent.event_id, event_type: type });
  expect(JSON.parse(row?.['body'] as string)).toMatchObject({
    event_id: sent.event_id,
    environment: 'live',
    data: { lender_reference: '0000000' },
  });
  expect(await ops.actionsOn(sent.notification_id)).toEqual(['webhooks.test']);
  expect(await ops.json('usage --partner P100003 --environment live')).toMatchObject({
    month: expect.stringMatching(/^\d{4}-\d\d$/),
    counts: [{ event_type: type, delivered: 0, reserved: 1, limit: 100, left: 99 }],
  });
});

/** Makes the first attempt of the next test that is stored, as a worker would. */
async function attemptNext(httpStatus: 200 | 503 | null): Promise<void> {
  const next = () => ops.database.sql<{ id: string }[]>`
    select notification_id as id from notifications_now where state = 'queued' and attempts = 0
      and partner_id = 'P100002'`;
  await until(async () => (await next()).length > 0, 'a test is stored');
  const failure = httpStatus === null ? ('tls' as const) : FAILED.failure;
  const result = httpStatus === 200 ? DELIVERED : { ...FAILED, httpStatus, failure };
  await attempt(ops.database, (await next())[0]?.id ?? '', result, 60_000);
}

test('waits for the first attempt: 0 and its status when it delivered, else 1 and what was answered', async () => {
  await register('P100002');
  const wait = ['webhooks', 'test', ...live('P100002'), '--wait'];
  const [delivered] = await Promise.all([ops.json(...wait), attemptNext(200)]);
  expect(delivered).toMatchObject({ status: 'delivered', attempt: { http_status: 200, duration_ms: 12 } });
  const failed = ops.refuses(1, /ntf_\w+ is not delivered.*answered 503/, ...wait);
  await Promise.all([failed, attemptNext(503)]);

  const shown = await ops.json('webhooks show', ...live('P100002'));
  expect(shown.last_attempts).toMatchObject([
    { http_status: 503, outcome: 'failed', failure: 'http_status' },
    { http_status: 200, outcome: 'delivered', notification_id: delivered.notification_id },
  ]);
  expect(await ops.text('webhooks show', ...live('P100002'))).toContain('failed: http_status 503 in 7 ms');
  const unanswered = ops.refuses(1, /gave no answer \(tls\)/, ...wait);
  await Promise.all([unanswered, attemptNext(null)]);
});

/** A success is written once a minute. */
const TO_THE_MINUTE = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\dZ$/);

const attemptNow = async (outcome: DeliveryOutcome) =>
  attempt(ops.database, (await storeStatus(ops.database, LANE)).notificationId, outcome);

test('shows how an endpoint is, what is held for it, and what operators should know', async () => {
  await attemptNow(DELIVERED);
  expect(await ops.json('webhooks show', ...NAMED)).toMatchObject({
    last_success_at: TO_THE_MINUTE,
    failing_since: null,
    failures_since_success: 0,
    held: 0,
  });
  await attemptNow({ ...FAILED, failure: 'gone', httpStatus: 410 });
  for (let nth = 0; nth < 3; nth += 1) await storeStatus(ops.database, LANE);
  await holdQueued(ops.database.db, LANE, { limit: 10 });

  const [listed] = await ops.json('webhooks list --partner', LANE.partnerId);
  const health = { state: 'disabled', disabled_reason: 'gone', failures_since_success: 1, held: 3 };
  expect(listed).toMatchObject({ ...health, failing_since: expect.stringMatching(/^\d{4}-/) });
  expect(await ops.json('webhooks show', endpointId)).toMatchObject(health);
  expect(await ops.text('webhooks list')).toMatch(/failing.*pending.*retrying.*paused.*held/);

  expect(await ops.json('events list --kind endpoint_disabled')).toMatchObject([
    {
      kind: 'endpoint_disabled',
      partner_id: LANE.partnerId,
      environment: 'live',
      endpoint_id: endpointId,
      details: { reason: 'gone', failures: 1, last_success_at: TO_THE_MINUTE },
    },
  ]);
  expect(await ops.json('events list', ...NAMED, '--kind', 'notifications_expired')).toEqual([]);
  expect(await ops.text('events list --wide')).toContain('it answered 410: ask the partner');
  await ops.refuses(2, '', 'events list --kind weather');
});

test('enabling, and registering in its place, say what is released by it', async () => {
  // The service has disabled it: now the operator has, and the alert for it ends.
  const disabled = `Endpoint ${endpointId} is now disabled (operator).`;
  expect(await ops.text('webhooks disable', ...NAMED)).toContain(disabled);
  expect(await ops.text('webhooks disable', endpointId)).toContain('was already disabled (operator)');
  await ops.refuses(1, 'no active live endpoint', 'webhooks test', ...NAMED);
  const enabled = await ops.text('webhooks enable', ...NAMED);
  expect(enabled).toContain('is now active.\n3 held notifications are released now');
  expect(await ops.json('webhooks show', ...NAMED)).toMatchObject({
    state: 'active',
    disabled_reason: null,
    failing_since: null,
    failures_since_success: 0,
    last_success_at: TO_THE_MINUTE,
  });
  const byOperator = (await ops.actionsOn(endpointId)).filter((action) => action !== 'rows.change');
  expect(byOperator).toEqual(['webhooks.enable', 'webhooks.disable', 'webhooks.create']);
  const replace = ['webhooks', 'create', ...NAMED, '--url', 'https://other.example/', '--replace'];
  expect(await ops.json(...replace)).toMatchObject({ held: 3 });
  expect(new Set(await ops.column('held', 'webhooks list --removed'))).toEqual(new Set([0, 3]));
});

describe('key pairs, whose public keys partners read', () => {
  const OWNER = { partnerId: 'P100005', environment: 'live' } as const;
  const OWN = live(OWNER.partnerId);
  const list = (environment = 'live') =>
    ops.json('webhook-keys list --partner P100005 --environment', environment);
  const rotate = (...more: string[]) => ops.json('webhook-keys rotate', ...OWN, ...more);

  test('there is none to rotate before an endpoint is registered, which makes it once', async () => {
    await ops.refuses(2, 'has no live key pair', 'webhook-keys rotate', ...OWN);
    const { endpoint_id: endpointId } = await register('P100005');
    const pairs = await list();
    expect(pairs).toEqual([
      {
        webhook_key_id: expect.stringMatching(/^whk_/),
        partner_id: 'P100005',
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
    const replaced = await register('P100005', '--replace');
    expect(await list()).toEqual(pairs);
    expect(await detailsOf(replaced.endpoint_id)).not.toHaveProperty('webhook_key_id');
  });

  test('two registrations at once make one', async () => {
    const at = ['--partner', 'P100005', '--environment', 'sandbox', '--url', URL_A];
    await Promise.all([1, 2, 3].map(() => ops.json('webhooks create', ...at, '--replace')));
    expect(await list('sandbox')).toHaveLength(1);
  });

  test('rotates with an overlap of a day, writes it down, and never has more than three', async () => {
    const [old] = await list();
    const added = await rotate();
    const [{ webhook_key_id: newId }, { webhook_key_id: oldId, expires_at: end }] = added.live;
    expect([newId, oldId]).toEqual([added.webhook_key_id, old.webhook_key_id]);
    const ends = Date.parse(end) - Date.now();
    expect(Math.abs(ends - 86_400_000)).toBeLessThan(600_000);
    const [change] = await ops.json('changes list --subject', added.webhook_key_id);
    expect(change).toMatchObject({
      action: 'webhook-keys.rotate',
      details: { partner_id: 'P100005', environment: 'live', overlap_seconds: 86_400 },
    });
    await rotate('--overlap', '7d');
    await ops.refuses(1, 'at most 3', 'webhook-keys rotate', ...OWN);
    await ops.refuses(1, 'between 0 and 7 days', 'webhook-keys rotate', ...OWN, '--overlap', '8d');
    // An earlier end stands.
    expect(await list()).toContainEqual(expect.objectContaining({ webhook_key_id: oldId, expires_at: end }));
  });

  test('when one leaked all old ones end at once, and people are told the public key', async () => {
    const human = await ops.text('webhook-keys rotate', ...OWN, '--overlap', '0');
    expect(human).toMatch(/whk_\w+ to the live environment of P100005\. It signs alone\./);
    const [, publicKey] = /GET \/v1\/webhook-keys: (whpk_\S+)\n/.exec(human) ?? [];
    const all = await list();
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
    const live = (await list()).filter((one: { signs: boolean }) => one.signs);
    expect(live).toHaveLength(3);
    expect(live.filter((one: { expires_at: string | null }) => one.expires_at === null)).toHaveLength(1);
    expect(new Set(done.map((one) => one.webhook_key_id)).size).toBe(2);
  });
});

test('re-encrypts under a new first key: dry run, then for good, then nothing is left to do', async () => {
  const old = ops.webhookKeys ?? '';
  const [{ endpoint_id: id } = { endpoint_id: '' }] = await ops.json('webhooks list --partner P100001');
  const secrets = await opened(id);
  const [{ count: found } = { count: 0 }] = await ops.database.sql<{ count: number }[]>`
    select (select count(*) from webhook_secrets)::int + (select count(*) from webhook_key_pairs)::int as count`;
  ops.webhookKeys = `next:${randomBytes(32).toString('base64')},${old}`;
  const dry = { found, resealed: found, dry_run: true };
  expect(await ops.json('secrets reencrypt --dry-run')).toMatchObject(dry);
  expect(await ops.json('secrets reencrypt --dry-run')).toMatchObject(dry);
  const human = await ops.run(['secrets reencrypt']);
  expect(human).toMatchObject({ code: 0, err: expect.stringMatching(`${found} of ${found}\n$`) });
  expect(human.out).toContain('under key next');
  expect(await ops.actionsOn('next')).toEqual(['secrets.reencrypt', 'secrets.reencrypt']);
  const [some, rest] = await ops.column('details', 'changes list --subject next');
  expect(some.resealed + rest.resealed).toBe(found);
  expect(await ops.json('secrets reencrypt')).toMatchObject({ found: 0, resealed: 0 });
  expect(await ops.json('secrets check')).toEqual({ found, by_key: { next: found } });

  ops.webhookKeys = ops.webhookKeys.split(',')[0] ?? '';
  expect(await opened(id)).toEqual(secrets);
  ops.webhookKeys = old;
});

test('re-encrypting leaves what cannot be opened as it is, names it, and ends with 1', async () => {
  for (const command of ['secrets check', 'secrets reencrypt'])
    await ops.refuses(1, /whs_\w+: .*no key with the id next/, command);
  const ids = await ops.database.sql`
    select key_id from webhook_secrets union select key_id from webhook_key_pairs`;
  expect(ids).toEqual([{ key_id: 'next' }]);
});

test('only commands that need the keys fail for their absence', async () => {
  ops.webhookKeys = null;
  await ops.json('webhooks list');
  await ops.json('webhooks secrets list', ...live('P100003'));
  await ops.json('webhooks test', ...live('P100003'));
  await ops.refuses(1, 'WEBHOOK_KEYS', 'webhooks secrets rotate', ...live('P100003'), '--overlap', '0');
  await ops.refuses(1, 'WEBHOOK_KEYS', 'secrets reencrypt');
});
