import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { loginRights } from '../../../db/postgres/rights';
import { migrateDatabase } from '../../../db/postgres/migrate';
import {
  FUNCTION_RIGHTS,
  PROCESSES,
  roleOf,
  TABLE_RIGHTS,
  type Process,
  SYSTEM_FUNCTION_RIGHTS,
  WITHHELD,
} from '../../../db/postgres/roles';
import { makePastMonth, monthOf, storeOldQuote } from '../../support/old-rows';
import { openDatabaseAt, testServerUrl } from '../../support/database';
import { asRole } from '../../support/roles';

/** As in production: a login that owns the database and may create no roles migrates it; the roles are there. */
const name = `roles_${randomBytes(4).toString('hex')}`;
const at = (url: string) => Object.assign(new URL(url), { pathname: `/${name}` }).href;
const open = (url: string) => postgres(url, { max: 1, onnotice: () => undefined, idle_timeout: 5 });
const administrator = open(testServerUrl());
const owner = `${name}_owner`;
const ownerUrl = Object.assign(new URL(at(testServerUrl())), { username: owner }).href;
const logins = {} as Record<Process, postgres.Sql>;
let sql: postgres.Sql;

beforeAll(async () => {
  const password = decodeURIComponent(new URL(testServerUrl()).password);
  await administrator.unsafe(`create role ${owner} login password '${password}'`);
  await administrator.unsafe(`create database ${name} owner ${owner}`);
  await administrator.unsafe(`revoke connect on database ${name} from public`);
  // What a superuser withholds in this database.
  const init = readFileSync(join(__dirname, '../../../deploy/postgres/init.sh'), 'utf8');
  const [, withhold = ''] = /--dbname quotes <<'SQL'\n([\s\S]+?)\nSQL\n/.exec(init) ?? [];
  expect(withhold).toContain(WITHHELD);
  const here = open(at(testServerUrl()));
  await here.unsafe(withhold.replace('to quotes with', `to ${owner} with`));
  await here.end();
  expect(await migrateDatabase(ownerUrl)).toMatchObject({ notSeparated: [] });
  sql = open(ownerUrl);
  for (const process of PROCESSES) logins[process] = open(asRole(at(testServerUrl()), process));
});
afterAll(async () => {
  await Promise.all([sql, ...Object.values(logins)].map((one) => one.end()));
  await administrator.unsafe(`drop database ${name} with (force)`);
  await administrator.unsafe(`drop role ${owner}`);
  await administrator.end();
});

/** Every right in the catalog that somebody other than the owner has in this database, as `role right thing`. */
async function granted(): Promise<string[]> {
  const rows = await sql<{ line: string }[]>`
    select concat_ws(' ', case acl.grantee when 0 then 'public' else pg_get_userbyid(acl.grantee) end,
      lower(acl.privilege_type), thing) as line
    from (
      select relacl as acl, relowner as owner, relname::text as thing from pg_class
        where relnamespace = 'public'::regnamespace and relkind <> 'i'
      union all
      select attacl, relowner, relname || '.' || attname from pg_attribute join pg_class c on c.oid = attrelid
        where relnamespace = 'public'::regnamespace
      union all
      select coalesce(proacl, acldefault('f', proowner)), proowner, p.oid::regprocedure::text from pg_proc p
        where pronamespace = 'public'::regnamespace
      union all
      select coalesce(proacl, acldefault('f', proowner)), ${owner}::regrole, p.oid::regprocedure::text from pg_proc p
        where pronamespace = 'pg_catalog'::regnamespace and proname ~ ${WITHHELD}
      union all
      select coalesce(datacl, acldefault('d', datdba)), datdba, 'database' from pg_database where datname = current_database()
      union all
      select coalesce(nspacl, acldefault('n', nspowner)), nspowner, nspname::text from pg_namespace
        where nspname !~ '^pg_' and nspname <> 'information_schema'
    ) o cross join lateral aclexplode(o.acl) acl
    where acl.grantee <> o.owner and acl.grantee not in ('pg_database_owner'::regrole, 'postgres'::regrole)`;
  return rows.map(({ line }) => line).toSorted();
}

/** Its lines of roles.ts. */
const rightsOf = (process: Process) =>
  Object.entries(TABLE_RIGHTS).flatMap(([table, rights]) =>
    [...(rights[process]?.matchAll(/(\w+)(?: \(([^)]+)\))?(?:, |$)/g) ?? [])].map(
      ([, right = '', columns]) => ({ table, right, columns: columns?.split(', ') }),
    ),
  );

/** The same as roles.ts has it. */
function wanted(): string[] {
  const lines = ['public usage public'];
  for (const process of PROCESSES) {
    const role = roleOf(process);
    lines.push(`${role} usage public`, `${role} connect database`);
    for (const { table, right, columns } of rightsOf(process))
      if (columns === undefined) lines.push(`${role} ${right} ${table}`);
      else for (const column of columns) lines.push(`${role} ${right} ${table}.${column}`);
    for (const [signature, processes] of Object.entries({ ...FUNCTION_RIGHTS, ...SYSTEM_FUNCTION_RIGHTS }))
      if (processes.includes(process))
        lines.push(
          `${role} execute ${signature
            .replaceAll(', ', ',')
            .replaceAll(/\bint\b/g, 'integer')
            .replaceAll('timestamptz', 'timestamp with time zone')}`,
        );
  }
  return lines.toSorted();
}

test('each role has the rights that roles.ts says, and nobody has any other', async () => {
  const found = await granted();
  expect(found.length).toBeGreaterThan(150);
  expect(found).toEqual(wanted());
});

test('every table and function has its line in roles.ts, trigger functions and what only functions call apart', async () => {
  const rows = await sql<{ name: string }[]>`
    select relname::text as name from pg_class where relnamespace = 'public'::regnamespace
      and relkind in ('r', 'p', 'v') and (not relispartition or relname ~ '_default$')
    union all
    select proname from pg_proc where pronamespace = 'public'::regnamespace and prorettype <> 'trigger'::regtype`;
  const lines = [TABLE_RIGHTS, FUNCTION_RIGHTS].flatMap((table) =>
    Object.keys(table).map((key) => key.replace(/\(.*/, '')),
  );
  expect(rows.map((row) => row.name).toSorted()).toEqual(
    [...lines, 'ensure_month_partitions', 'log_removal'].toSorted(),
  );
});

test('what somebody granted by hand is taken back by the next migration', async () => {
  await sql`grant update (details), delete on change_log to quotes_api`;
  await sql`grant execute on function delete_expired to public`;
  await sql`grant insert on quotes_default to quotes_ops`;
  expect(await granted()).not.toEqual(wanted());
  expect(await migrateDatabase(ownerUrl)).toMatchObject({ notSeparated: [] });
  expect(await granted()).toEqual(wanted());
});

test('a release older than the schema takes nothing from the roles of the newer one', async () => {
  await sql`insert into drizzle.__drizzle_migrations (hash, created_at) values ('newer', 9999999999999)`;
  await sql`grant select on webhook_secrets to quotes_api`;
  await migrateDatabase(ownerUrl);
  expect(await granted()).toContain('quotes_api select webhook_secrets');
  await sql`delete from drizzle.__drizzle_migrations where hash = 'newer'`;
  await migrateDatabase(ownerUrl);
  expect(await granted()).toEqual(wanted());
});

/** SQLSTATE that Postgres refuses with; `done` when it does not. */
const refusal = (login: postgres.Sql, statement: string) =>
  login.unsafe(statement).then(
    () => 'done',
    (error: postgres.PostgresError) => error.code,
  );
const NO_RIGHT = '42501';

const FORBIDDEN_TO_ALL = [
  // The change log.
  `update change_log set actor = 'somebody else'`,
  'delete from change_log',
  'alter table change_log disable trigger all',
  'alter table change_log disable trigger change_log_append_only',
  'create or replace function refuse_change() returns trigger language plpgsql as $$ begin return null; end $$',
  `set session_replication_role = 'replica'`,
  `select setval('change_log_change_id_seq', 1)`,
  // Ahead of its numbers, so that later lines would meet theirs; of another time; of another login.
  `select nextval('change_log_change_id_seq')`,
  `insert into change_log (change_id, actor, action, subject) overriding system value
    select n, 'x', 'x', 'x' from generate_series(1, 200000) n`,
  `insert into change_log (changed_at, actor, action, subject) values ('2020-01-01', 'x', 'x', 'x')`,
  `insert into change_log (login, actor, action, subject) values ('quotes_ops', 'x', 'x', 'x')`,
  // The schema.
  'create table public.mine (id int)',
  'create temporary table mine (id int)',
  'create schema mine',
  'create function public.mine() returns int language sql as $$ select 1 $$',
  `create or replace function service_now() returns timestamptz language sql as $$ select now() - interval '9 years' $$`,
  'alter table quotes add column mine text',
  'create trigger mine before insert on quotes for each row execute function refuse_change()',
  'create extension pg_trgm',
  // Rows, partitions.
  `update quotes set response = '{}'`,
  'drop table quotes_default',
  'alter table quotes detach partition quotes_default',
  'insert into quotes_default select * from quotes',
  `select ensure_month_partitions('change_log', 'change_id', '', 12)`,
  // How long what is kept.
  `update retention_days set days = 31`,
  `update retention_marks set done_up_to = 'ntf_~'`,
  'truncate retention_days',
  // The disk, and others' locks.
  `select lo_from_bytea(0, decode(repeat('00', 1000), 'hex'))`,
  `select pg_logical_emit_message(false, 'x', repeat('x', 1000))`,
  'select pg_advisory_lock(7205114233)',
  'select pg_advisory_unlock_all()',
  // Others' rights.
  'grant quotes_ops to current_user',
  'alter role current_user superuser',
  'alter role current_user createrole',
  'create role mine',
  'select * from drizzle.__drizzle_migrations',
  `insert into drizzle.__drizzle_migrations (hash, created_at) values ('x', 1)`,
  `copy quotes to program 'id'`,
  `copy quotes to 'quotes.copy'`,
  `select pg_read_file('/etc/passwd')`,
  'select rolpassword from pg_authid',
  'reset role; set role postgres',
];

describe.each(PROCESSES)('%s', (process) => {
  test('logs in as a role without attributes, and stays it', async () => {
    const [row] = await logins[process]`
      select rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls as attributes,
        (select count(*)::int from pg_auth_members where member = r.oid) as memberships
      from pg_roles r where rolname = current_user`;
    expect(row).toEqual({ attributes: false, memberships: 0 });
    for (const other of [...PROCESSES.filter((one) => one !== process).map(roleOf), owner, 'postgres'])
      for (const order of [`set role ${other}`, `set session authorization ${other}`])
        expect([order, await refusal(logins[process], order)]).toEqual([order, NO_RIGHT]);
  });

  test.each(FORBIDDEN_TO_ALL)('is refused: %s', async (statement) => {
    expect(await refusal(logins[process], statement)).toBe(NO_RIGHT);
  });
});

const OLD = monthOf(3_000);
const CLAIM_LOCK = `select pg_try_advisory_xact_lock(hashtext('claim_notifications'), hashtext('P100001/live'))`;
const FORBIDDEN = [
  ['api ops', 'select keep_month_partitions()'],
  ['api ops', `select drop_expired_month('quotes', '${OLD}')`],
  ['api ops', `select delete_expired('quotes', 'quotes_default', 1000)`],
  ['api ops', `select clear_payloads('', 1000)`],
  ['api ops', `select claim_notifications_1(1, 1, interval '1 h', interval '1 h', '', '')`],
  ['api ops', `select open_attempt_1('ntf_1', 1, null, 100, true)`],
  ['api ops', `update delivery_attempts set answer = null`],
  ['api ops', `update notifications set body = ''`],
  ['api ops', CLAIM_LOCK],
  ['api worker', 'select pg_advisory_xact_lock(1)'],
  // The rights of most consequence, independent of roles.ts.
  ['api', 'select * from webhook_secrets'],
  ['api', 'select ciphertext from webhook_key_pairs'],
  ['api ops', `update webhook_key_pairs set public_key = 'whpk_'`],
  ['api', 'select endpoint_id from webhook_endpoints'],
  ['api', 'select answer from delivery_attempts'],
  ['api worker', 'select * from change_log'],
  ['api', `update api_keys set state = 'active'`],
  ['api', 'insert into api_keys select * from api_keys'],
  ['api', 'delete from deliveries'],
  ['worker ops', 'select * from cursor_secrets'],
  ['api worker ops', `update webhook_endpoints set url = 'https://attacker.example'`],
  ['api', 'update monthly_counts set delivered = 0'],
  ['api', `insert into recoveries (recovery_id, sent) values ('rcv_1', 1)`],
  ['worker', 'select * from quotes'],
  ['worker', 'select * from api_keys'],
  ['worker', `update webhook_secrets set ciphertext = ''`],
  ['ops', 'insert into quotes select * from quotes'],
  ['ops', 'update product_versions set apr_basis_points = 0'],
].flatMap(([processes = '', statement = '']) =>
  processes.split(' ').map((process) => [process as Process, statement] as const),
);
test.each(FORBIDDEN)('%s is refused: %s', async (process, statement) => {
  expect(await refusal(logins[process], statement)).toBe(NO_RIGHT);
});

test('a right that nobody may pass on is not passed on, though Postgres only warns', async () => {
  for (const login of Object.values(logins)) {
    await refusal(login, 'grant all on change_log to public');
    await refusal(login, 'revoke all on change_log from quotes_ops');
  }
  expect(await granted()).toEqual(wanted());
});

describe('what runs with the rights of the owner', () => {
  test.each([
    // No month of ours.
    `select drop_expired_month('change_log', '${OLD}')`,
    `select drop_expired_month('quotes', 'default')`,
    `select drop_expired_month('quotes', '1999_01')`,
    `select drop_expired_month('quotes', '${OLD}; drop table quotes')`,
    `select drop_expired_month(null, null)`,
    `select drop_expired_month('quotes', null)`,
    `select drop_expired_month('pg_catalog.pg_class', '${OLD}')`,
    // Not old enough.
    `select drop_expired_month('quotes', '${monthOf(0)}')`,
    `select drop_expired_month('quotes', to_char(now() + interval '2 months', 'YYYY_MM'))`,
    `select drop_expired_month('payloads', '${OLD}')`,
    `select delete_expired('payloads', 'notifications_default', 1)`,
    `select delete_expired('change_log', 'change_log', 1)`,
    `select delete_expired('quotes', 'change_log', 1)`,
    `select delete_expired('quotes', 'notifications_default', 1)`,
    `select delete_expired('quotes', null, 1)`,
    `select delete_expired(null, 'quotes_default', 1)`,
  ])('refuses: %s', async (statement) => {
    expect(await refusal(logins.worker, statement)).toBe(NO_RIGHT);
  });

  test('quotes of the last seven years stay, whatever the worker asks for; older ones go with its login in the log', async () => {
    const [young, old] = [monthOf(2_500), monthOf(2_600)];
    for (const month of [young, old]) await makePastMonth({ sql } as never, month);
    const kept = await storeOldQuote({ sql } as never, 2_500);
    await storeOldQuote({ sql } as never, 2_600);
    expect(await refusal(logins.worker, `select drop_expired_month('quotes', '${young}')`)).toBe(NO_RIGHT);
    for (const month of [young, old])
      await logins.worker`select delete_expired('quotes', ${`quotes_${month}`}, 100)`;
    expect(await sql`select quote_id from quotes`).toEqual([{ quote_id: kept }]);
    const login = 'quotes_worker';
    expect(
      await sql`select actor, login, subject, details from change_log where action = 'retention.remove'`,
    ).toEqual([{ actor: login, login, subject: 'quotes', details: { rows: 1, older_than_days: 2_557 } }]);
  });

  test('an object of somebody else in the way of a name changes nothing', async () => {
    // Nobody but the owner may make one; yet the functions look into pg_catalog and public first.
    const paths = await sql`
      select proname::text as name, proconfig from pg_proc where pronamespace = 'public'::regnamespace and prosecdef order by 1`;
    expect(paths.map(({ name: of }) => of as string)).toEqual([
      'clear_payloads',
      'delete_expired',
      'drop_expired_month',
      'keep_interval',
      'keep_month_partitions',
    ]);
    for (const { proconfig } of paths) expect(proconfig).toContain('search_path=public, pg_temp');
  });
});

describe('a notification that a process inserts', () => {
  const ULID = '01KAF1Z4Q0T6M5S7Y2W3X4V5B';
  const application = `app_${ULID}6`;
  const status = {
    notification_id: `ntf_${ULID}7`,
    event_id: `evt_${ULID}7`,
    event_type: 'credit_application.accepted',
    partner_id: 'P100001',
    environment: 'live',
    application_id: application as string | null,
    sequence: 3 as number | null,
    merchant_reference: 'basket 2041' as string | null,
    body: '{}',
    request_id: 'x'.repeat(128) as string | null,
    trace_parent: null as string | null,
  };
  const none = { application_id: null, sequence: null, merchant_reference: null };
  const test_ = { ...status, ...none, event_type: 'credit_application.test' };
  /** Inserts it and takes it back. */
  const insert = (process: Process, row: Partial<typeof status>) =>
    logins[process]
      .begin(async (tx) => {
        await tx`insert into notifications ${tx(row)} returning notification_id`;
        throw new Error('done');
      })
      .catch((error: Partial<postgres.PostgresError>) => error.code ?? error.message);

  beforeAll(async () => {
    await sql`insert into partners (partner_id, name) values ('P100001', 'One'), ('P100002', 'Two')`;
    await sql`
      insert into credit_applications (application_id, lender, lender_reference, quote_id, partner_id, environment,
        merchant_id, merchant_reference, loan_pence, deposit_pence, state, sequence)
      values (${application}, 'lender_a', 'AB12CD34', ${`qte_${ULID}7`}, 'P100001', 'live',
        'M100001', 'basket 2041', 90000, 10000, 'accepted', 3)`;
  });

  test.each(['api', 'worker'] as const)('%s: what its application says', async (process) => {
    expect(await insert(process, status)).toBe('done');
  });
  test.each(['api', 'ops'] as const)('%s: a test', async (process) => {
    expect(await insert(process, test_)).toBe('done');
  });

  const REFUSED: readonly (readonly [string, object, Partial<typeof status>])[] = [
    ["another partner's application", status, { partner_id: 'P100002' }],
    ['the other environment', status, { environment: 'sandbox' }],
    ['no environment of ours', test_, { environment: 'production' }],
    ['an application that does not exist', status, { application_id: `app_${ULID}8` }],
    ['a sequence ahead', status, { sequence: 4 }],
    ['a sequence of before', status, { sequence: 2 }],
    ['a state in which the application is not', status, { event_type: 'credit_application.paid_out' }],
    ["another's reference", status, { merchant_reference: 'basket 1' }],
    ['no reference', status, { merchant_reference: null }],
    ['a type outside the list', test_, { event_type: 'credit_application.anything' }],
    ['a test with an application', status, { event_type: 'credit_application.test' }],
    ['a state without an application', test_, { event_type: 'credit_application.accepted' }],
    ['a partner id of no form', test_, { partner_id: 'P100001\n' }],
    ['a line break in its id', status, { notification_id: `ntf_${ULID}\n` }],
    ['a line break behind its id', status, { notification_id: `ntf_${ULID}7\n` }],
    ['a line break in the id of its event', status, { event_id: `evt_${ULID}7\nX: y` }],
    ['an id of another kind', status, { event_id: `ntf_${ULID}7` }],
    ['an id in lower case', status, { event_id: `evt_${ULID}7`.toLowerCase() }],
    ['a request id that no claim could carry', test_, { request_id: '"'.repeat(201) }],
    ['a trace that no claim could carry', test_, { trace_parent: '"'.repeat(201) }],
    ['a test with a reference', test_, { merchant_reference: 'basket 2041' }],
    ['a body of more than 20 KB', status, { body: 'é'.repeat(10_001) }],
  ];
  test.each(REFUSED)('is refused: %s', async (_, row, change) => {
    for (const process of PROCESSES) expect(await insert(process, { ...row, ...change })).toBe(NO_RIGHT);
  });

  test('is refused: a moment that no claim can reckon with', async () => {
    const statement = `
      insert into notifications (notification_id, event_id, event_type, partner_id, environment, body, created_at)
      values ('ntf_${ULID}9', 'evt_${ULID}9', 'credit_application.test', 'P100001', 'live', '{}', 'infinity')`;
    for (const process of PROCESSES) expect(await refusal(logins[process], statement)).toBe(NO_RIGHT);
  });

  test('is refused though the login switches policies off', async () => {
    await logins.api`set row_security = off`;
    expect(await insert('api', test_)).toBe(NO_RIGHT);
    await logins.api`reset row_security`;
  });
});

describe('a delivery that a process inserts', () => {
  const BAD_ROW = '23514';
  const row = {
    notification_id: 'ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B8',
    partner_id: 'P100001',
    environment: 'live',
    application_id: 'app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6' as string | null,
    sequence: 3 as number | null,
    test: false,
    delivered: false,
    generation: 1,
    attempts: 0,
  };
  const insert = (process: Process, changed: Partial<typeof row>) =>
    logins[process]
      .begin(async (tx) => {
        await tx`insert into deliveries ${tx({ ...row, ...changed })}`;
        throw new Error('done');
      })
      .catch((error: Partial<postgres.PostgresError>) => error.code ?? error.message);

  beforeAll(async () => {
    // It has ended, after twelve attempts in two generations.
    await sql`
      insert into notifications (notification_id, event_id, event_type, partner_id, environment, application_id, sequence,
        body, generation, attempts, end_state, end_reason, ended_at)
      values (${row.notification_id}, 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B8', 'credit_application.accepted', 'P100001', 'live',
        ${row.application_id}, 3, '{}', 2, 12, 'failed', 'exhausted', now())`;
  });
  afterEach(() => sql`delete from deliveries`);

  test.each(PROCESSES)('%s: a new one, and one that is sent again', async (process) => {
    expect(await insert(process, {})).toBe('done');
    expect(await insert(process, { generation: 3, attempts: 12 })).toBe('done');
    expect(await insert(process, { test: true, application_id: null, sequence: null })).toBe('done');
  });

  const REFUSED: readonly (readonly [string, string, Partial<typeof row>])[] = [
    ['attempts that the next one would overflow', NO_RIGHT, { attempts: 2_147_483_647 }],
    ['more attempts than were made', NO_RIGHT, { generation: 3, attempts: 13 }],
    ['a generation ahead', NO_RIGHT, { generation: 4, attempts: 12 }],
    ['a negative generation', NO_RIGHT, { generation: -1 }],
    ['a delivery that there was not', NO_RIGHT, { generation: 3, attempts: 12, delivered: true }],
    ['an id that Temporal starts no workflow of', NO_RIGHT, { notification_id: 'x'.repeat(1_500) }],
    ['an id of no form, whose moment a metric would read', NO_RIGHT, { notification_id: '!' }],
    ['a queue of no partner', NO_RIGHT, { partner_id: 'Q1' }],
    ['an application id that is too long', NO_RIGHT, { application_id: 'x'.repeat(65) }],
    ['a test with an application', NO_RIGHT, { test: true }],
    ['no test, and no application', NO_RIGHT, { application_id: null, sequence: null }],
    ['no environment of ours', BAD_ROW, { environment: 'nonsense' }],
  ];
  test.each(REFUSED)('is refused: %s', async (_, code, change) => {
    for (const process of PROCESSES) expect(await insert(process, change)).toBe(code);
  });

  test.each([
    ['a generation without a next one', 'update deliveries set generation = 1000000000'],
    ['an earlier generation', 'update deliveries set generation = 0'],
  ])('every process is refused: %s', async (_, statement) => {
    await sql`insert into deliveries ${sql(row)}`;
    for (const process of PROCESSES) expect(await refusal(logins[process], statement)).toBe(NO_RIGHT);
  });

  test.each([
    ['a moment that does not come', `update deliveries set due_at = 'infinity'`],
    ['a hold since ever', `update deliveries set state = 'held', held_at = '-infinity', hold_reason = 'x'`],
    [
      'a reason of any length',
      `update deliveries set state = 'held', held_at = now(), hold_reason = repeat('x', 201)`,
    ],
    ['a negative step', 'update deliveries set step = -1'],
    ['a quota whose sum would overflow', 'update monthly_counts set reserved = 2147483647'],
    [
      'a recovery without an end',
      `insert into recoveries (recovery_id, partner_id, environment, since, until, key_id, per_second, found, runner)
        values ('rcv_1', 'P100001', 'live', now(), now(), 'key_1', 0, 1, '')`,
    ],
    [
      'a recovery that no index counts',
      `insert into recoveries (recovery_id, partner_id, environment, since, until, key_id, per_second, found, runner)
        values ('rcv_1', 'P100001', null, now(), now(), 'key_1', 1, 1, '')`,
    ],
  ])('the API is refused: %s', async (_, statement) => {
    await sql`insert into deliveries ${sql(row)}`;
    await sql`
      insert into monthly_counts (partner_id, environment, month, event_type)
      values ('P100001', 'live', '2026-11-01', 'credit_application.test') on conflict do nothing`;
    expect(await refusal(logins.api, statement)).toBe(BAD_ROW);
  });
});

test('an API and a worker log in as their roles: nothing to report of them', async () => {
  for (const process of PROCESSES) {
    const database = openDatabaseAt(asRole(at(testServerUrl()), process));
    const login = roleOf(process);
    expect(await loginRights(database.sql, process)).toEqual({ login, enough: true, surplus: [] });
    const [other = 'api'] = PROCESSES.filter((one) => one !== process);
    const surplus = [`it has the rights of ${login}`];
    expect(await loginRights(database.sql, other)).toEqual({ login, enough: false, surplus });
    await database.close();
  }
});
