#!/bin/bash
# Once, on an empty volume: a role and its databases for the service, and for Temporal.
set -euo pipefail

psql --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
  --set quotes_password="$QUOTES_DB_PASSWORD" --set temporal_password="$TEMPORAL_DB_PASSWORD" <<'SQL'
create role quotes login password :'quotes_password';
create role temporal login password :'temporal_password';
create database quotes owner quotes;
create database temporal owner temporal;
create database temporal_visibility owner temporal;
revoke connect on database quotes, temporal, temporal_visibility from public;
SQL
