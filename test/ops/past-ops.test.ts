import { TABLE_RIGHTS } from '../../db/postgres/roles';
import { asRole } from '../../testbed/roles';
import { newPartner } from '../../testbed/notifications';
import { openDatabaseAt } from '../support/database';
import { PRODUCT_ROW, useOps } from './run';

const ops = useOps({ partners: ['P100001'], merchants: ['M300001'] });
const PAST_OPS = 'changes list --action rows.change';
let productId = '';
let login: ReturnType<typeof openDatabaseAt>;

beforeAll(async () => {
  login = openDatabaseAt(asRole(ops.database.url, 'ops'));
  await ops.import('products', [PRODUCT_ROW]);
  ({ product_id: productId } = await ops.json(
    'products show',
    PRODUCT_ROW.merchant_id,
    PRODUCT_ROW.credit_product,
  ));
});
afterAll(() => login.close());

/** Tables of which the change log says nothing: their rows say who, or workers and API processes write to them all the time. */
const OTHERS = [
  'notifications',
  'deliveries',
  'delivery_attempts',
  'monthly_counts',
  'recoveries',
  'change_log',
];

test('every other table that ops may write to has the trigger', async () => {
  const written = Object.entries(TABLE_RIGHTS)
    .filter(([, { ops: rights = '' }]) => /insert|update|delete/.test(rights))
    .map(([table]) => table);
  const triggers = await ops.database.sql<{ of: string }[]>`
    select distinct tgrelid::regclass::text as of from pg_trigger where tgname like '%\\_logged' and tgenabled = 'O' and tgdeferrable`;
  expect(triggers.map((one) => one.of).toSorted()).toEqual(
    written.filter((table) => !OTHERS.includes(table)).toSorted(),
  );
});

test('a price that is changed by plain SQL leaves lines with the old and new values, and the login', async () => {
  expect(await ops.json(PAST_OPS)).toEqual([]);
  await login.sql.unsafe(`
    begin;
    insert into product_versions select (jsonb_populate_record(v, '{"version": 2, "apr_basis_points": 990, "lender": "lender_b"}')).*
      from product_versions v;
    savepoint later;
    update products set current_version = 2;
    commit`);
  const [moved, made] = await ops.json(PAST_OPS);
  const who = { actor: 'quotes_ops', login: 'quotes_ops', subject: productId };
  expect(moved).toMatchObject({
    ...who,
    details: { table: 'products', change: 'update', fields: [{ field: 'current_version', from: 1, to: 2 }] },
  });
  expect(made).toMatchObject({ ...who, details: { table: 'product_versions', change: 'insert' } });
  expect(made.details.fields).toContainEqual({ field: 'apr_basis_points', from: null, to: 990 });
  expect(await ops.text('changes show', String(moved.change_id))).toContain('\n    current_version: 1 to 2');
});

test('a line of another transaction about the same does not stand for it', async () => {
  const other = openDatabaseAt(asRole(ops.database.url, 'ops'));
  await login.sql.begin(async (tx) => {
    await tx`update products set display_order = 40`;
    await other.sql`insert into change_log (actor, action, subject) values ('x', 'products.import', ${productId})`;
  });
  await other.close();
  const [line] = await ops.json(PAST_OPS);
  expect(line.details.fields).toEqual([{ field: 'display_order', from: 1, to: 40 }]);
});

test('the line of a change is found by an index, before Postgres has counted the rows too', async () => {
  await ops.database.sql.begin(async (tx) => {
    // As if an index cost more than the whole table, which Postgres supposes of tables that it has not counted.
    await tx`set local random_page_cost = 10000`;
    await tx`update products set display_order = 41`;
    await tx`set constraints all immediate`;
    expect([
      ...(await tx`select seq_tup_read::int as read from pg_stat_xact_user_tables where relname = 'change_log'`),
    ]).toEqual([{ read: 0 }]);
  });
});

test('no line shows a hash or a sealed secret, and a worker leaves one when it disables an endpoint, but none for its health', async () => {
  const { partnerId } = await newPartner(ops.database, ops.webhookKeys ?? '');
  await ops.json('keys create --environment live --partner', partnerId);
  await login.sql`
    insert into api_keys select (jsonb_populate_record(k, '{"key_id": "key_copy", "key_hash": "\\\\x01"}')).* from api_keys k`;
  const tables = (await ops.json(PAST_OPS)).map((line: { details: { table: string } }) => line.details.table);
  expect(tables).toEqual(expect.arrayContaining(['api_keys', 'webhook_secrets', 'webhook_key_pairs']));
  expect(await ops.text(PAST_OPS, '--json')).toContain('not shown');
  expect(await ops.text(PAST_OPS, '--json')).not.toMatch(/\\x[0-9a-f]/);

  const worker = openDatabaseAt(asRole(ops.database.url, 'worker'));
  const health = worker.sql`update webhook_endpoints set failures_since_success = 3, failing_since = service_now(), warned_hours = 24`;
  expect((await health).count).toBe(1);
  expect(await ops.json(PAST_OPS)).toHaveLength(tables.length);
  await worker.sql`update webhook_endpoints set state = 'disabled', disabled_reason = 'gone'`;
  await worker.close();
  const [disabled] = await ops.json(PAST_OPS, '--partner', partnerId);
  expect(disabled).toMatchObject({
    login: 'quotes_worker',
    details: { table: 'webhook_endpoints', change: 'update' },
  });
  expect(disabled.details.fields).toEqual([
    { field: 'disabled_reason', from: null, to: 'gone' },
    { field: 'state', from: 'active', to: 'disabled' },
  ]);
});

test('what is switched through ops leaves its own line alone, with the old and new value', async () => {
  const { endpoint_id: endpoint, partner_id: partner } = (await ops.json('webhooks list'))[0];
  const { key_id: key } = (await ops.json('keys list --partner', partner))[0];
  const { change_id: last } = (await ops.json('changes list --limit 1'))[0];
  for (const command of [
    `webhooks enable ${endpoint}`,
    `keys disable ${key}`,
    `partners disable ${partner}`,
    `partners pause-deliveries ${partner} --environment live`,
    'lenders set lender_a --reference-format [A-Z]{4}',
  ])
    await ops.json(command);
  await ops.json('products disable', PRODUCT_ROW.merchant_id, PRODUCT_ROW.credit_product);
  const since = (await ops.json('changes list')).filter(
    (line: { change_id: number }) => line.change_id > last,
  );
  const said = since.map(({ action, details }: { action: string; details: { fields: unknown[] } }) => [
    action,
    details.fields,
  ]);
  expect(said.toReversed()).toEqual([
    [
      'webhooks.enable',
      [
        { field: 'state', from: 'disabled', to: 'active' },
        { field: 'disabled_reason', from: 'gone', to: null },
      ],
    ],
    ['keys.disable', [{ field: 'state', from: 'active', to: 'inactive' }]],
    ['partners.disable', [{ field: 'state', from: 'active', to: 'inactive' }]],
    ['partners.pause-deliveries', [{ field: 'deliveries_paused', from: false, to: true }]],
    ['lenders.set', [{ field: 'reference_format', from: '[A-Za-z0-9]{8}', to: '[A-Z]{4}' }]],
    ['products.disable', [{ field: 'active', from: true, to: false }]],
  ]);
});
