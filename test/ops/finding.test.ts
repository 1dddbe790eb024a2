import { ulid } from 'ulid';
import { insertQuotes } from '../../db/quotes/store';
import { openApplication } from '../support/applications';
import { addEndpoint } from '../../testbed/notifications';
import { storeRow } from '../support/partner-events';
import { quoteRow } from '../../testbed/values';
import { useOps } from './run';

const ops = useOps({ partners: ['P100001', 'P100002'] });
/** An application with this reference of the partner's, its quote, and the notification of it. */
async function application(merchantReference: string, partnerId = 'P100001') {
  const { applicationId, quoteId } = await openApplication(ops.database, { partnerId, merchantReference });
  const [row] = await ops.database.sql<{ notificationId: string }[]>`
    select notification_id as "notificationId" from notifications where application_id = ${applicationId}`;
  return { applicationId, quoteId, notificationId: row?.notificationId ?? '' };
}

/** Quotes of the last minutes, the newest first. */
async function quotes(...references: string[]) {
  const ids = references.map((_, at) => `qte_${ulid(Date.now() - (at + 1) * 60_000)}`);
  const rows = references.map((merchantReference, at) =>
    quoteRow(at, { quoteId: ids[at] ?? '', partnerId: 'P100001', merchantReference }),
  );
  await insertQuotes(ops.database.sql, rows);
  return ids;
}

test('one reference of a partner finds its quote, application and notifications', async () => {
  const one = await application('ORDER-1042');
  await application('ORDER-1043');
  const find = (noun: string, name: string) =>
    ops.column(name, noun, 'list', '--merchant-reference', 'ORDER-1042');
  expect(await find('quotes', 'service_quote_id')).toEqual([one.quoteId]);
  expect(await find('applications', 'credit_application_id')).toEqual([one.applicationId]);
  expect(await find('notifications', 'notification_id')).toEqual([one.notificationId]);
  const of = ops.column('notification_id', 'notifications list --application', one.applicationId);
  expect(await of).toEqual([one.notificationId]);
  expect(await ops.text('quotes list --merchant-reference ORDER-9')).toMatch(
    /^None from 20[\dT:.-]+Z on \(--since\)\.\n$/,
  );
});

test('a list that is cut off prints the command for the next page, which a shell takes', async () => {
  const ids = await quotes("it's", "it's", "it's");
  const list = ['quotes list --merchant-reference', "it's", '--limit', '2'];
  const [, command] = /^There may be more: (.*)$/m.exec(await ops.text(...list)) ?? [];
  expect(command).toBe(`ops quotes list --merchant-reference 'it'\\''s' --limit 2 --after ${ids[1]}`);
  const second = await ops.text(...list, '--after', ids[1] ?? '');
  expect(second).toContain(ids[2]);
  expect(second).not.toContain('There may be more');
  await ops.database.sql`
    insert into operator_events (kind, partner_id, details) values ('endpoint_recovered', 'P100001', '{}')`;
  for (const [noun, name] of [
    ['applications', 'credit_application_id'],
    ['notifications', 'notification_id'],
    ['changes', 'change_id'],
    ['events', 'event_id'],
  ] as const) {
    const last = (await ops.column(name, noun, 'list')).at(-1);
    expect(await ops.json(noun, 'list', '--after', String(last))).toEqual([]);
  }
});

test('changes of a partner are those of its keys, endpoints, secrets and notifications, too', async () => {
  const wanted = { partnerId: 'P100002', url: 'https://a.example/', keyRing: ops.webhookKeys ?? '' };
  const { endpointId } = await addEndpoint(ops.database, wanted);
  const issued = await ops.json('keys create --partner P100002 --environment live');
  await ops.json('keys rotate', issued.key_id);
  await ops.json('keys revoke', issued.key_id);
  await ops.json('webhooks secrets rotate', endpointId);
  const { notificationId } = await application('ORDER-7', 'P100002');
  await ops.json('notifications cancel', notificationId);
  const other = await ops.json('keys create --partner P100001 --environment live');
  const found = await ops.json('changes list --partner P100002 --since 1h --actor tester');
  expect(found.map(({ action }: { action: string }) => action).join(' ')).toBe(
    'notifications.cancel webhooks.secrets.rotate keys.revoke keys.rotate keys.rotate keys.create partners.create',
  );
  expect(await ops.json('changes list --partner P100002 --actor', other.key_id)).toEqual([]);
  expect(await ops.json('changes list --partner P100002 --since 2h --until 1h')).toEqual([]);
  const [{ change_id: change }] = found;
  expect(await ops.json('changes show', String(change))).toEqual(found[0]);
  expect(await ops.text('changes show', String(change))).toMatch(/^partner_id +P100002$/m);
});

test('a change whose details another login made up is shown as it is', async () => {
  for (const fields of [null, 'apr', [null], [{ field: 'apr', to: 1 }]]) {
    const [row] = await ops.database.sql<{ id: string }[]>`
      insert into change_log (actor, action, subject, details)
      values ('x', 'products.import', 'prd_x', ${JSON.stringify({ fields })}::text::jsonb) returning change_id::text as id`;
    expect(await ops.text('changes show', row?.id ?? '')).toMatch(/^fields +\S/m);
  }
});

test('usage of a month: of all partners, and of one by event type with the limit of tests', async () => {
  const { sql } = ops.database;
  await sql`insert into monthly_counts (partner_id, environment, month, event_type, delivered, failed) values
    ('P100001', 'live', '2026-03-01', 'credit_application.accepted', 5, 1),
    ('P100001', 'live', '2026-03-01', 'credit_application.declined', 2, 0),
    ('P100002', 'sandbox', '2026-03-01', 'credit_application.test', 90, 4),
    ('P100002', 'sandbox', '2026-04-01', 'credit_application.test', 7, 0)`;
  await sql`update monthly_counts set reserved = 3 where month = '2026-03-01' and partner_id = 'P100002'`;
  const [before, first, last, after] = [
    '2026-02-28T23:59:59Z',
    '2026-03-01T00:00:00Z',
    '2026-03-31T23:59:59Z',
    '2026-04-01T00:00:00Z',
  ];
  const quoteAt = (at: string, nth: number) =>
    quoteRow(nth, { quoteId: `qte_${ulid(Date.parse(at))}`, environment: 'live' });
  await insertQuotes(sql, [before, first, last, after].map(quoteAt));
  const id = await storeRow(ops.database, { partnerId: 'P100002', environment: 'live' });
  const key = 'key_01KAF1Z4Q0T6M5S7Y2W3X4V5BA';
  // The last three: of another month, by an operator, and as a part of a recovery.
  for (const [at, actor, more] of [
    [first, key],
    [last, key],
    [after, key],
    [first, 'alice'],
    [first, key, { recovery_id: 'rcv_1' }],
  ] as const)
    await sql`
      insert into change_log (changed_at, actor, action, subject, details)
      values (${at}, ${actor}, 'notifications.resend', ${id}, ${JSON.stringify({ partner_id: 'P100002', ...more })})`;
  for (const [recovery, keyId, sent] of [
    ['rcv_1', key, 12],
    ['rcv_2', key, 30],
    ['rcv_3', null, 7],
  ] as const)
    await sql`
      insert into recoveries (recovery_id, partner_id, environment, key_id, since, until, state, per_second, found, sent, runner, created_at)
      values (${recovery}, 'P100002', 'live', ${keyId}, now(), now(), 'done', 10, ${sent}, ${sent}, 'x', ${first})`;
  const none = { resends: 0, recoveries: 0, recovered: 0 };
  const own = { resends: 2, recoveries: 2, recovered: 42 };
  expect(await ops.json('usage --month 2026-03')).toEqual({
    month: '2026-03',
    partners: [
      { partner_id: 'P100001', environment: 'live', quotes: 2, delivered: 7, failed: 1, ...none },
      { partner_id: 'P100002', environment: 'live', quotes: 0, delivered: 0, failed: 0, ...own },
      { partner_id: 'P100002', environment: 'sandbox', quotes: 0, delivered: 90, failed: 4, ...none },
    ],
  });
  const test = { event_type: 'credit_application.test', limit: 100 };
  expect(await ops.json('usage --month 2026-03 --partner P100001')).toMatchObject({
    quotes: { live: 2, sandbox: 0 },
    sent_again: {},
    counts: [
      { event_type: 'credit_application.accepted', delivered: 5, failed: 1, limit: null, left: null },
      { event_type: 'credit_application.declined', delivered: 2 },
      { environment: 'live', ...test, delivered: 0, left: 100 },
      { environment: 'sandbox', ...test, delivered: 0, left: 100 },
    ],
  });
  const one = ['usage --month 2026-03 --partner P100002'];
  expect(await ops.json(...one, '--environment', 'sandbox')).toEqual({
    partner_id: 'P100002',
    month: '2026-03',
    quotes: { sandbox: 0 },
    sent_again: {},
    counts: [{ environment: 'sandbox', ...test, delivered: 90, failed: 4, reserved: 3, left: 7 }],
  });
  const text = await ops.text(...one);
  expect(text).toContain('2026-03 (UTC)');
  expect(text).toContain('Sent again by itself, live: 2 resends, 2 recoveries of 42 notifications.');
});

test('tables fit into 120 characters, name what they leave out, and are whole with --wide', async () => {
  await ops.json('partners create --name', `A very long name ${'x'.repeat(100)}`, '--id', 'P100003');
  await quotes('a long reference '.repeat(10).trim());
  await application(`ORDER-${'9'.repeat(60)}`);
  const nouns = 'partners keys merchants products quotes applications webhooks notifications events changes';
  for (const noun of nouns.split(' ')) {
    const narrow = await ops.text(noun, 'list');
    const widest = Math.max(...narrow.split('\n').map((line) => (/^[┌├└│]/.test(line) ? line.length : 0)));
    expect([noun, widest <= 120]).toEqual([noun, true]);
    expect(await ops.text(noun, 'list', '--wide')).not.toContain('…');
  }
  const narrow = await ops.text('partners list');
  expect(narrow).not.toContain('x'.repeat(100));
  expect(narrow).toMatch(/│ A very long name +│[^\n]+\n│ +│ x+… │/);
  expect(await ops.text('partners list --wide')).toContain('x'.repeat(100));
  expect(await ops.text('notifications list')).toMatch(/^Not shown, --wide does: .*created, ended\.$/m);
  expect(await ops.text('notifications list --wide')).toMatch(/│ ended/);
});
