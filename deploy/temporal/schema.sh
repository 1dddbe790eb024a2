#!/bin/sh
# Brings both databases of Temporal to the schema of this version of the tool. What is there already stays.
set -eu
export SQL_PLUGIN=postgres12_pgx SQL_USER=temporal SQL_PASSWORD="$TEMPORAL_DB_PASSWORD"

bring() {
  temporal-sql-tool --db "$1" setup-schema -v 0.0
  temporal-sql-tool --db "$1" update-schema --schema-name "postgresql/v12/$2"
}
bring temporal temporal
bring temporal_visibility visibility
temporal-sql-tool --db temporal_visibility setup-schema --disable-versioning --schema-file "$(dirname "$0")/visibility-indexes.sql"
