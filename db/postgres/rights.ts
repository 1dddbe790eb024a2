import { runPrepared, type Reader, type Sql } from './connect';
import {
  FUNCTION_RIGHTS,
  PROCESSES,
  roleOf,
  SYSTEM_FUNCTION_RIGHTS,
  TABLE_RIGHTS,
  type Process,
  WITHHELD,
} from './roles';

const ROLES = `array[${PROCESSES.map((process) => `'${roleOf(process)}'`).join(', ')}]`;

/** Roles belong to the server. The migration of another database may create the same one at this moment. */
const CREATE_ROLES = `
  do $$
  declare
    wanted text;
  begin
    foreach wanted in array ${ROLES} loop
      continue when exists (select from pg_roles where rolname = wanted);
      begin
        execute format('create role %I nologin', wanted);
      exception
        when duplicate_object or unique_violation or insufficient_privilege then null;
      end;
    end loop;
  end $$`;

// Revokes all rights in the schema, and the default right to make temporary tables.
const TAKE_EVERYTHING = `
  do $$
  declare
    owner constant oid := (select relowner from pg_class where oid = 'public.change_log'::regclass);
    roles constant text := (select string_agg(quote_ident(rolname), ', ') from pg_roles where rolname = any(${ROLES}));
    thing text;
  begin
    for thing in
      select format('%s %s', case relkind when 'S' then 'sequence' else 'table' end, c.oid::regclass) from pg_class c
      where relnamespace = 'public'::regnamespace and relowner = owner and relkind in ('r', 'p', 'v', 'm', 'S')
        and (relacl is not null or exists (select from pg_attribute where attrelid = c.oid and attacl is not null))
        and not exists (select from pg_depend where objid = c.oid and deptype = 'e')
      union all
      select format('routine %s', p.oid::regprocedure) from pg_proc p
      where pronamespace = 'public'::regnamespace and proowner = owner
        and not exists (select from pg_depend where objid = p.oid and deptype = 'e')
    loop
      execute format('revoke all on %s from %s', thing, concat_ws(', ', 'public', roles));
    end loop;
    begin
      revoke create on schema public from public;
      execute format('revoke temporary on database %I from public', current_database());
      if roles is not null then
        execute format('grant connect on database %I to %s', current_database(), roles);
      end if;
    exception
      when insufficient_privilege then null;
    end;
  end $$`;

// Revokes what a superuser withholds from PUBLIC (deploy/postgres/init.sh), if it may.
const TAKE_SYSTEM_FUNCTIONS = `
  do $$
  declare
    roles constant text := (select string_agg(quote_ident(rolname), ', ') from pg_roles where rolname = any(${ROLES}));
    ours constant boolean := (select relowner = current_user::regrole from pg_class where oid = 'public.change_log'::regclass);
    thing record;
  begin
    for thing in
      select oid::regprocedure as name, pg_has_role(proowner, 'USAGE') as owned from pg_proc
      where pronamespace = 'pg_catalog'::regnamespace and proname ~ '${WITHHELD}'
        and has_function_privilege(current_user, oid, 'EXECUTE WITH GRANT OPTION')
    loop
      if ours and thing.owned then
        execute format('revoke execute on function %s from public', thing.name);
      end if;
      if roles is not null then
        execute format('revoke execute on function %s from %s', thing.name, roles);
      end if;
    end loop;
  end $$`;

const PASSES_ON = `
  select bool_and(has_function_privilege(current_user, oid, 'EXECUTE WITH GRANT OPTION')) as passes from pg_proc
  where pronamespace = 'pg_catalog'::regnamespace and proname ~ '${WITHHELD}'`;

function grants(roles: ReadonlySet<string>, passesOn: boolean): string {
  const lines: string[] = [];
  const add = (what: string, thing: string, process: Process) => {
    if (roles.has(roleOf(process))) lines.push(`grant ${what} on ${thing} to ${roleOf(process)}`);
  };
  for (const process of PROCESSES) {
    add('usage', 'schema public', process);
    for (const [table, rights] of Object.entries(TABLE_RIGHTS)) {
      const right = rights[process];
      if (right !== undefined) add(right, `table public.${table}`, process);
    }
  }
  for (const [name, processes] of Object.entries(FUNCTION_RIGHTS))
    for (const process of processes) add('execute', `function public.${name}`, process);
  for (const [name, processes] of Object.entries(passesOn ? SYSTEM_FUNCTION_RIGHTS : {}))
    for (const process of processes) add('execute', `function pg_catalog.${name}`, process);
  return lines.join(';\n');
}

/**
 * Grants each role the rights of roles.ts and revokes all others from it and from PUBLIC, in one
 * transaction, so that running processes are not disturbed. Creates missing roles if the login may.
 * @returns the processes without a role
 * @throws when the login does not own the tables
 */
export async function applyRights(sql: Sql): Promise<readonly Process[]> {
  const present = await sql.begin(async (tx) => {
    await tx.unsafe(CREATE_ROLES);
    await tx.unsafe(TAKE_EVERYTHING);
    await tx.unsafe(TAKE_SYSTEM_FUNCTIONS);
    const [mine] = await tx.unsafe(PASSES_ON);
    const roles = await tx.unsafe(`select rolname::text as name from pg_roles where rolname = any(${ROLES})`);
    const names = new Set(roles.map(({ name }) => String(name)));
    await tx.unsafe(grants(names, mine?.['passes'] === true));
    return names;
  });
  return PROCESSES.filter((process) => !present.has(roleOf(process)));
}

/** A setting of a login, `statement_timeout=1ms`, in all databases or in this one. */
export interface LoginSetting {
  readonly login: string;
  readonly database: string | null;
  readonly setting: string;
}

// The logins of the processes are members of the roles, or are them. The owner's belongs to migrate.
const LOGIN_SETTINGS = `
  select l.rolname::text as login, d.datname::text as database, setting
  from pg_db_role_setting s join pg_roles l on l.oid = s.setrole left join pg_database d on d.oid = s.setdatabase
  cross join unnest(s.setconfig) setting
  where not l.rolsuper and (d.oid is null or d.datname = current_database())
    and (l.oid = (select datdba from pg_database where datname = current_database())
      or exists (select from pg_roles r where r.rolname = any(${ROLES}) and pg_has_role(l.oid, r.oid, 'MEMBER')))
  order by 1, 2, 3`;

/**
 * Settings that every new session of a login of ours begins with. We make none, but each login may make
 * them for itself, which Postgres cannot forbid.
 */
export const loginSettings = (reader: Reader) => runPrepared<LoginSetting>(reader, LOGIN_SETTINGS);

/** How many of them there are. */
export const LOGIN_SETTING_COUNT = `(select count(*)::int from (${LOGIN_SETTINGS}) s)`;

/**
 * Compares the rights of a process's login with those of its role.
 * @throws before the first migration
 */
export async function loginRights(sql: Sql, process: Process) {
  const others = PROCESSES.filter((other) => other !== process).map(roleOf);
  const [row] = await sql<
    { login: string; own: boolean; owns: boolean; rewrites: boolean; locks: boolean; others: string }[]
  >`
    select current_user::text as login, pg_has_role(c.relowner, 'USAGE') as owns,
      exists (select from pg_roles where rolname = ${roleOf(process)} and pg_has_role(oid, 'USAGE')) as own,
      has_table_privilege(c.oid, 'UPDATE') or has_table_privilege(c.oid, 'DELETE')
        or has_table_privilege(c.oid, 'TRUNCATE') as rewrites,
      has_function_privilege('pg_catalog.pg_advisory_lock(bigint)', 'EXECUTE') as locks,
      (select coalesce(string_agg(rolname, ', ' order by rolname), '') from pg_roles
        where rolname = any(string_to_array(${others.join()}, ',')) and pg_has_role(oid, 'USAGE')) as others
    from pg_class c where c.oid = to_regclass('public.change_log')`;
  if (row === undefined) throw new Error('the database has not been migrated');
  const { login, own, owns, rewrites, locks } = row;
  return {
    login,
    enough: own || owns,
    surplus: [
      ...(owns ? ['it owns the tables, so it may change the schema'] : []),
      ...(rewrites ? ['it may rewrite the change log'] : []),
      ...(locks && !owns
        ? [
            'it may take any lock and store large objects, as everybody may in this database: run init.sh withhold',
          ]
        : []),
      ...(row.others === '' || owns ? [] : [`it has the rights of ${row.others}`]),
    ],
  };
}
