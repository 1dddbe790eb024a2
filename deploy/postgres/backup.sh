#!/bin/bash
# A backup, to be made every night (docs/operations/backup.md):
#   docker compose exec -T --user postgres postgres bash /scripts/backup.sh
# A base backup of the whole server, from which and the archived log every moment since can be restored, and a dump of the database
# `quotes` as a second way. Seven of each are kept, and of the archive what the oldest base backup needs.
set -euo pipefail
folder="${BACKUPS:-/backups}"
keep=7
exec 9>"$folder/.lock"
flock -n 9 || { echo 'backup: another one is under way' >&2; exit 1; }

# What an interrupted one left, and this one when it fails: the archive needs the room.
clear() { rm -rf "$folder"/base/*.part "$folder"/dump/*.part; }
trap clear EXIT
clear
pg_basebackup --pgdata="$folder/base/new.part" --format=tar --gzip --checkpoint=fast
# Not what only a superuser may make again, such as an extension for monitoring: it is restored as the login that owns the rest.
pg_dump --format=custom --extension=plpgsql --file="$folder/dump/new.part" quotes
sync -f "$folder"
# Its end: it restores no moment before that.
name=$(date -u +%Y-%m-%dT%H%M%SZ)
mv -T "$folder/base/new.part" "$folder/base/$name"
mv -T "$folder/dump/new.part" "$folder/dump/$name.dump"

for kind in base dump; do
  ls "$folder/$kind" | head -n "-$keep" | while read -r old; do rm -rf "${folder:?}/$kind/$old"; done
done
oldest=$(ls "$folder/base" | head -n 1)
first=$(tar -xzOf "$folder/base/$oldest/base.tar.gz" backup_label | sed -n 's/^START WAL LOCATION: .*(file \(.*\))$/\1/p')
pg_archivecleanup -x .gz "$folder/archive" "$first"

# For Prometheus, through node_exporter.
printf 'pfqs_backup_completed_timestamp_seconds %s\n' "$(date +%s)" >"$folder/metrics/backup.prom.part"
mv "$folder/metrics/backup.prom.part" "$folder/metrics/backup.prom"
# For `ops status`. A server that is not the service's own database any more has no such table: the backup is complete all the same.
psql --quiet --dbname=quotes --command='INSERT INTO backups DEFAULT VALUES' || echo 'backup: ops status will not know of it' >&2
echo "backup: $name is complete: $(du -sh "$folder/base/$name" | cut -f1) base backup, $(du -sh "$folder/dump/$name.dump" | cut -f1) dump"
