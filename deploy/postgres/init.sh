#!/bin/bash
# Once, on an empty volume: the service's database with a login that owns it (migrate) and one for each kind of process, and those of
# Temporal. What the logins may do in the database is granted by migrate (db/postgres/roles.ts); none of them may make roles or databases.
set -euo pipefail

psql --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
  --set quotes_password="$QUOTES_DB_PASSWORD" --set api_password="$QUOTES_API_DB_PASSWORD" \
  --set worker_password="$QUOTES_WORKER_DB_PASSWORD" --set ops_password="$QUOTES_OPS_DB_PASSWORD" \
  --set temporal_password="$TEMPORAL_DB_PASSWORD" <<'SQL'
create role quotes login password :'quotes_password';
create role quotes_api login password :'api_password';
create role quotes_worker login password :'worker_password';
create role quotes_ops login password :'ops_password';
create role temporal login password :'temporal_password';
create database quotes owner quotes;
create database temporal owner temporal;
create database temporal_visibility owner temporal;
revoke connect on database quotes, temporal, temporal_visibility, postgres, template1 from public;
SQL
