#!/bin/bash
# The entry point of the image `postgres`: hands the data to the server's user, becomes that, and prepares an empty folder.
set -euo pipefail
if [ "${1:-}" = postgres ] && [ "$(id -u)" -eq 0 ]; then
  mkdir -p "$PGDATA"
  chmod 700 "$PGDATA"
  find "$PGDATA" /var/run/postgresql \! -user postgres -exec chown postgres {} +
  exec gosu postgres "$BASH_SOURCE" "$@"
fi
if [ "${1:-}" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username="$POSTGRES_USER" --pwfile=<(echo "$POSTGRES_PASSWORD")
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  # By its socket alone until it is prepared.
  pg_ctl -w start -o "-c listen_addresses='' -c archive_mode=off"
  for file in /docker-entrypoint-initdb.d/*.sh; do bash "$file"; done
  pg_ctl -w -m fast stop
fi
exec "$@"
