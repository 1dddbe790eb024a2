import { PROCESSES, roleOf, type Process } from './roles';
import type { Sql } from './connect';

interface LoginRights {
  readonly login: string;
  /** Whether it may do what its process has to. */
  readonly enough: boolean;
  /** What it may do besides, in words for the log; empty when it is separated as it should be. */
  readonly surplus: readonly string[];
}

/** What the login of a process may do, held against the role of that process. @throws when Postgres cannot be reached, or nobody has migrated. */
export async function loginRights(sql: Sql, process: Process): Promise<LoginRights> {
  const others = PROCESSES.filter((other) => other !== process).map(roleOf);
  const [row] = await sql<
    { login: string; own: boolean; owns: boolean; rewrites: boolean; others: string }[]
  >`
    select current_user::text as login, pg_has_role(c.relowner, 'USAGE') as owns,
      exists (select from pg_roles where rolname = ${roleOf(process)} and pg_has_role(oid, 'USAGE')) as own,
      has_table_privilege(c.oid, 'UPDATE') or has_table_privilege(c.oid, 'DELETE')
        or has_table_privilege(c.oid, 'TRUNCATE') as rewrites,
      (select coalesce(string_agg(rolname, ', ' order by rolname), '') from pg_roles
        where rolname = any(string_to_array(${others.join()}, ',')) and pg_has_role(oid, 'USAGE')) as others
    from pg_class c where c.oid = to_regclass('public.change_log')`;
  if (row === undefined) throw new Error('the database has not been migrated');
  const { login, own, owns, rewrites } = row;
  return {
    login,
    enough: own || owns,
    surplus: [
      ...(owns ? ['it owns the tables, so it may change the schema'] : []),
      ...(rewrites ? ['it may rewrite the change log'] : []),
      ...(row.others === '' || owns ? [] : [`it has the rights of ${row.others}`]),
    ],
  };
}
