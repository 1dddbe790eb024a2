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
import { asRole, NO_RIGHT, sqlStateOf } from '../../../testbed/roles';

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

test('the change log takes lines and keeps them, whoever owns it', async () => {
  for (const order of [
    `update change_log set actor = 'nobody'`,
    'delete from change_log',
    'truncate change_log',
  ])
    await expect(sql.unsafe(order)).rejects.toThrow('change_log is append-only');
});

const FORBIDDEN_TO_ALL = [
  // The change log.
  `update change_log set actor = 'somebody else'`,
  'delete from change_log',
  'alter table change_log disable trigger change_log_append_only',
  `set session_replication_role = 'replica'`,
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
  `create or replace function service_now() returns timestamptz language sql as $$ select now() - interval '9 years' $$`,
  'create trigger mine before insert on quotes for each row execute function refuse_change()',
  'create extension pg_trgm',
  // Rows, partitions.
  `update quotes set response = '{}'`,
  'alter table quotes detach partition quotes_default',
  'insert into quotes_default select * from quotes',
  `select ensure_month_partitions('change_log', 'change_id', '', 12)`,
  // How long what is kept.
  `update retention_days set days = 31`,
  'truncate retention_days',
  // The disk, and others' locks.
  `select lo_from_bytea(0, decode(repeat('00', 1000), 'hex'))`,
  `select pg_logical_emit_message(false, 'x', repeat('x', 1000))`,
  'select pg_advisory_lock(7205114233)',
  'select pg_advisory_unlock_all()',
  // Others' rights.
  'grant quotes_ops to current_user',
  'alter role current_user superuser',
  'create role mine',
  'select * from drizzle.__drizzle_migrations',
  `copy quotes to program 'id'`,
  `select pg_read_file('/etc/passwd')`,
  'select rolpassword from pg_authid',
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
        expect([order, await sqlStateOf(logins[process], order)]).toEqual([order, NO_RIGHT]);
  });

  test.each(FORBIDDEN_TO_ALL)('is refused: %s', async (statement) => {
    expect(await sqlStateOf(logins[process], statement)).toBe(NO_RIGHT);
  });
});

const OLD = monthOf(3_000);
const CLAIM_LOCK = `select pg_try_advisory_xact_lock(hashtext('claim_notifications'), hashtext('P100001/live'))`;
const FORBIDDEN = [
  ['api ops', 'select keep_month_partitions()'],
  ['api ops', `select drop_expired_month('quotes', '${OLD}')`],
  ['api ops', `select delete_expired('quotes', 'quotes_default', 1000)`],
  ['api ops', `select clear_payloads('', 1000)`],
  [
    'api ops',
    `select claim_notifications_3(1, interval '1 h', interval '1 h', interval '0', '{}', '{}', '{}')`,
  ],
  ['api ops', `select open_attempt_1('ntf_1', 1, null, 100, '{0}', '{0}')`],
  ['api ops', `update deliveries set ladder_ms = '{0}'`],
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
  expect(await sqlStateOf(logins[process], statement)).toBe(NO_RIGHT);
});

test('a right that nobody may pass on is not passed on, though Postgres only warns', async () => {
  for (const login of Object.values(logins)) {
    await sqlStateOf(login, 'grant all on change_log to public');
    await sqlStateOf(login, 'revoke all on change_log from quotes_ops');
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
    `select drop_expired_month('quotes', null)`,
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
    expect(await sqlStateOf(logins.worker, statement)).toBe(NO_RIGHT);
  });

  test('quotes of the last seven years stay, whatever the worker asks for; older ones go with its login in the log', async () => {
    const [young, old] = [monthOf(2_500), monthOf(2_600)];
    for (const month of [young, old]) await makePastMonth({ sql } as never, month);
    const kept = await storeOldQuote({ sql } as never, 2_500);
    await storeOldQuote({ sql } as never, 2_600);
    expect(await sqlStateOf(logins.worker, `select drop_expired_month('quotes', '${young}')`)).toBe(NO_RIGHT);
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
      select proconfig from pg_proc where pronamespace = 'public'::regnamespace and prosecdef`;
    expect(paths.length).toBeGreaterThan(4);
    for (const { proconfig } of paths) expect(proconfig).toContain('search_path=public, pg_temp');
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
    // As in a database that was made anew for a dump.
    const lock = 'function pg_catalog.pg_advisory_lock(bigint)';
    await sql.unsafe(`grant execute on ${lock} to public`);
    const everybody = expect.stringContaining('as everybody may in this database: run init.sh withhold');
    expect(await loginRights(database.sql, process)).toMatchObject({ surplus: [everybody] });
    await sql.unsafe(`revoke execute on ${lock} from public`);
    await database.close();
  }
});
