#!/bin/bash
# Once, on an empty volume: the service's database with a login that owns it (migrate) and one for each kind of process, and those of
# Temporal. What the logins may do in the database is granted by migrate (db/postgres/roles.ts); none of them may make roles or databases.
# init.sh withhold: its last part alone, for a database that took the place of the first.
set -euo pipefail

if [ "${1:-}" != withhold ]; then
# psql reads the passwords from its environment: every user of the machine sees its arguments.
: "${QUOTES_DB_PASSWORD:?}" "${QUOTES_API_DB_PASSWORD:?}" "${QUOTES_WORKER_DB_PASSWORD:?}" "${QUOTES_OPS_DB_PASSWORD:?}" "${TEMPORAL_DB_PASSWORD:?}"
export QUOTES_DB_PASSWORD QUOTES_API_DB_PASSWORD QUOTES_WORKER_DB_PASSWORD QUOTES_OPS_DB_PASSWORD TEMPORAL_DB_PASSWORD
psql --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\getenv quotes_password QUOTES_DB_PASSWORD
\getenv api_password QUOTES_API_DB_PASSWORD
\getenv worker_password QUOTES_WORKER_DB_PASSWORD
\getenv ops_password QUOTES_OPS_DB_PASSWORD
\getenv temporal_password TEMPORAL_DB_PASSWORD
-- The server's log must not contain them either, whatever it logs.
set log_statement = 'none';
set log_min_duration_statement = -1;
set log_min_error_statement = 'panic';
-- Together fewer than max_connections (300), so that no login can keep the others out: five API processes of 15 sessions, six workers of 12.
create role quotes login password :'quotes_password' connection limit 10;
create role quotes_api login password :'api_password' connection limit 75;
create role quotes_worker login password :'worker_password' connection limit 72;
create role quotes_ops login password :'ops_password' connection limit 20;
create role temporal login password :'temporal_password' connection limit 100;
create database quotes owner quotes;
create database temporal owner temporal;
create database temporal_visibility owner temporal;
revoke connect on database quotes, temporal, temporal_visibility, postgres, template1 from public;
SQL
fi

# What Postgres lets everybody do, and few need: take the locks of others, store large objects, write to the log. migrate passes on what a
# process needs (db/postgres/roles.ts).
psql --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname quotes <<'SQL'
do $$
declare
  thing regprocedure;
begin
  for thing in
    select oid from pg_proc where pronamespace = 'pg_catalog'::regnamespace
      and proname ~ '^(pg_(try_)?advisory_|lo_|loread$|lowrite$|pg_logical_emit_message$)'
  loop
    execute format('revoke execute on function %s from public', thing);
    execute format('grant execute on function %s to quotes with grant option', thing);
  end loop;
end $$;
SQL
