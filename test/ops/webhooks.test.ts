import { randomBytes } from 'node:crypto';
import { openAttempt, recordAttempt } from '../../db/notifications/attempt';
import { liveSecrets } from '../../db/endpoints/secrets';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { createOpsUnderTest, type OpsUnderTest } from './run';

const URL_A = 'https://partner.example/hooks';
let ops: OpsUnderTest;

beforeAll(async () => {
  ops = await createOpsUnderTest();
  for (const id of ['P100001', 'P100002', 'P100003'])
    await ops.json('partners create --name', id, '--id', id);
});

afterAll(() => ops.close());

const live = (partner: string) => ['--partner', partner, '--environment', 'live'];
const register = (partner: string, ...more: string[]) =>
  ops.json('webhooks register', ...live(partner), '--url', URL_A, ...more);
/** What deliveries of an endpoint are signed with, newest first. */
const opened = async (endpointId: string) => {
  const ring = parseKeyRing(ops.webhookKeys ?? '');
  return (await liveSecrets(ops.database.db, endpointId)).map((sealed) => ring.open(sealed, sealed));
};
const changesOf = async (subject: string) =>
  ((await ops.json('changes list --subject', subject)) as { action: string; details: unknown }[]).map(
    ({ action, details }) => [action, details] as const,
  );

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

  const again = ['webhooks', 'register', ...live('P100001'), '--url', 'https://other.example/'];
  await ops.refuses(1, '--replace', ...again);
  const human = await ops.run([...again, '--replace']);
  const secret = /\n {2}(whsec_\S{44})\n/.exec(human.out)?.[1];
  expect(human.out).toContain(`in place of ${first.endpoint_id}`);
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
  expect(await changesOf(now.endpoint_id)).toEqual([
    ['webhooks.register', expect.objectContaining({ replaced: first.endpoint_id, environment: 'live' })],
  ]);
});

test.each([
  'http://partner.example/',
  'https://user@partner.example/',
  'https://partner.example/?a=1',
  'https://partner.example:8443/',
  'https://127.0.0.1/',
])('refuses the URL %s, and stores nothing', async (url) => {
  const refused = await ops.run(['webhooks register', ...live('P100002'), '--url', url, '--json']);
  expect(refused.code).toBe(1);
  expect(refused.json()).toMatchObject({
    error: { code: 'invalid', message: expect.stringMatching(/^The URL/) },
  });
  expect(await ops.json('webhooks list --partner P100002')).toEqual([]);
});

test('disables and enables, by id or by partner and environment, and says what changed', async () => {
  const { endpoint_id: id } = await register('P100002');
  expect(await ops.json('webhooks disable', id)).toMatchObject({ state: 'disabled', changed: true });
  expect(await ops.json('webhooks disable', ...live('P100002'))).toMatchObject({ changed: false });
  expect((await ops.run(['webhooks show', ...live('P100002')])).out).toContain('operator');
  await ops.refuses(1, 'no active live endpoint', 'webhooks test', ...live('P100002'));
  expect(await ops.json('webhooks enable', ...live('P100002'))).toMatchObject({
    state: 'active',
    disabled_reason: null,
    changed: true,
  });
  expect(await ops.actionsOn(id)).toEqual(['webhooks.enable', 'webhooks.disable', 'webhooks.register']);
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

  const third = await ops.run(['webhooks secrets rotate', id]);
  expect(third.out).toMatch(/Older ones sign on until .*\n\n {2}whsec_/);
  await ops.refuses(1, 'at most 3', 'webhooks secrets rotate', id);
  await ops.refuses(1, '', 'webhooks secrets rotate', id, '--overlap', '8d');
  const alone = await ops.json('webhooks secrets rotate', id, '--overlap', '0');
  expect(await opened(id)).toEqual([alone.secret]);
  expect(alone.live).toHaveLength(1);
  const changes = await changesOf(id);
  expect(changes.map(([action]) => action)).toEqual([
    ...Array.from({ length: 3 }, () => 'webhooks.secrets.rotate'),
    'webhooks.register',
  ]);
  expect(JSON.stringify(changes)).not.toContain('whsec_');
});

test('sends a test as the API does: a place in the month, an event, an entry in the log', async () => {
  await register('P100003', '--replace');
  const sent = await ops.json('webhooks test', ...live('P100003'), '--lender', 'lender_b');
  const [row] = await ops.database.sql`
    select state, event_id, event_type, body from notifications_now where notification_id = ${sent.notification_id}`;
  expect(row).toMatchObject({
    state: 'queued',
    event_id: sent.event_id,
    event_type: 'credit_application.test',
  });
  expect(JSON.parse(row?.['body'] as string)).toMatchObject({
    event_id: sent.event_id,
    environment: 'live',
    data: { lender_reference: '0000000' },
  });
  expect(await ops.actionsOn(sent.notification_id)).toEqual(['webhooks.test']);
  expect(await ops.json('usage --partner P100003 --environment live')).toMatchObject({
    month: expect.stringMatching(/^\d{4}-\d\d$/),
    counts: [{ event_type: 'credit_application.test', delivered: 0, reserved: 1, limit: 100, left: 99 }],
  });
});

/** Makes the first attempt of the next test that is stored, as a worker would. */
async function attemptNext(httpStatus: number): Promise<void> {
  for (;;) {
    const [row] = await ops.database.sql`
      select notification_id as id from notifications_now where state = 'queued' and attempts = 0
        and partner_id = 'P100002'`;
    if (row === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      continue;
    }
    const notificationId = row['id'] as string;
    const attempt = await openAttempt(ops.database.db, { notificationId, generation: 1 });
    if (attempt.kind !== 'open') throw new Error(attempt.kind);
    const ref = { notificationId, attemptNumber: attempt.attemptNumber };
    const took = { httpStatus, durationMs: 35 };
    const outcome =
      httpStatus === 200
        ? ({ kind: 'delivered', ...took } as const)
        : ({ kind: 'failed', failure: 'http_status', retryAfterMs: null, ...took } as const);
    await recordAttempt(ops.database.db, ref, { outcome, address: '192.0.2.1' }, null);
    return;
  }
}

test('waits for the first attempt: 0 and its status when it delivered, else 1 and what was answered', async () => {
  const wait = ['webhooks', 'test', ...live('P100002'), '--wait'];
  const [delivered] = await Promise.all([ops.json(...wait), attemptNext(200)]);
  expect(delivered).toMatchObject({ status: 'delivered', attempt: { http_status: 200, duration_ms: 35 } });
  const [failed] = await Promise.all([ops.run(wait), attemptNext(503)]);
  expect(failed).toMatchObject({
    code: 1,
    err: expect.stringMatching(/ntf_\w+ is not delivered.*answered 503/),
  });

  const shown = await ops.json('webhooks show', ...live('P100002'));
  expect(shown.last_attempts).toMatchObject([
    { http_status: 503, outcome: 'failed', failure: 'http_status' },
    { http_status: 200, outcome: 'delivered', notification_id: delivered.notification_id },
  ]);
  expect((await ops.run(['webhooks show', ...live('P100002')])).out).toContain(
    'failed: http_status 503 in 35 ms',
  );
});

test('refuses a test past the limit, and says when the month ends', async () => {
  await ops.database.sql`update monthly_counts set delivered = 100 - reserved where partner_id = 'P100002'`;
  const refused = await ops.run(['webhooks test', ...live('P100002')]);
  expect(refused).toMatchObject({
    code: 1,
    err: expect.stringMatching(/limit of 100 .* ends at \d{4}-\d\d-01T/),
  });
});

test('re-encrypts under a new first key: dry run, then for good, then nothing is left to do', async () => {
  const old = ops.webhookKeys ?? '';
  const [{ endpoint_id: id } = { endpoint_id: '' }] = await ops.json('webhooks list --partner P100001');
  const secrets = await opened(id);
  const [{ count: found } = { count: 0 }] = await ops.database.sql<{ count: number }[]>`
    select (select count(*) from webhook_secrets)::int + (select count(*) from webhook_key_pairs)::int as count`;
  ops.webhookKeys = `next:${randomBytes(32).toString('base64')},${old}`;
  expect(await ops.json('secrets reencrypt --dry-run')).toMatchObject({
    found,
    resealed: found,
    dry_run: true,
  });
  expect(await ops.json('secrets reencrypt --dry-run')).toMatchObject({ found });
  const human = await ops.run(['secrets reencrypt']);
  expect(human).toMatchObject({ code: 0, err: expect.stringMatching(`${found} of ${found}\n$`) });
  expect(human.out).toContain('under key next');
  const changes = (await changesOf('next')) as [string, { resealed: number }][];
  expect(changes.map(([action]) => action)).toEqual(['secrets.reencrypt', 'secrets.reencrypt']);
  expect(changes.reduce((sum, [, { resealed }]) => sum + resealed, 0)).toBe(found);
  expect(await ops.json('secrets reencrypt')).toMatchObject({ found: 0, resealed: 0 });
  expect(await ops.json('secrets check')).toEqual({ found, by_key: { next: found } });

  ops.webhookKeys = ops.webhookKeys.split(',')[0] ?? '';
  expect(await opened(id)).toEqual(secrets);
  ops.webhookKeys = old;
});

test('re-encrypting leaves what cannot be opened as it is, names it, and ends with 1', async () => {
  await ops.refuses(1, /whs_\w+: .*no key with the id next/, 'secrets check');
  const lost = await ops.run(['secrets reencrypt']);
  expect(lost).toMatchObject({ code: 1, err: expect.stringMatching(/whs_\w+: .*no key with the id next/) });
  const ids = await ops.database.sql`
    select key_id from webhook_secrets union select key_id from webhook_key_pairs`;
  expect(ids).toEqual([{ key_id: 'next' }]);
});

test('only commands that need the keys fail for their absence', async () => {
  ops.webhookKeys = null;
  const outcomes = [
    await ops.run(['webhooks list']),
    await ops.run(['webhooks secrets list', ...live('P100003')]),
    await ops.run(['webhooks test', ...live('P100003')]),
    await ops.run(['webhooks secrets rotate', ...live('P100003'), '--overlap', '0']),
    await ops.run(['secrets reencrypt']),
  ];
  expect(outcomes.map(({ code }) => code)).toEqual([0, 0, 0, 1, 1]);
  expect(outcomes.at(-1)?.err).toContain('WEBHOOK_KEYS');
});
