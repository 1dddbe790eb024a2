#!/bin/bash
# Puts a base backup in the place of the server's data, so that its next start replays the archived log (docs/operations/backup.md):
#   docker compose run --rm --no-deps --entrypoint bash postgres /scripts/restore.sh ['2026-11-21 11:59:30 UTC']
# Elsewhere, as the server's account: PGDATA=/path/of/the/data BACKUPS=/path/of/the/backups bash restore.sh […]
# With a moment: to that moment. Without: everything that was archived. The data that were there are kept beside the new.
set -euo pipefail
# Whole names: Postgres runs restore_command in its own folder, and what a link names stays on its disk.
folder=$(readlink -m "${BACKUPS:-/backups}")
data=$(readlink -m "${PGDATA:?}")
fail() { echo "restore: $1" >&2; exit 1; }

answer=0
pg_isready -q -t 5 -h "${POSTGRES_HOST:-postgres}" -p "${PGPORT:-5432}" || answer=$?
# The address may be another than that of the server of these data; on the same machine its working folder shows it.
server=$(head -n 1 "$data/postmaster.pid" 2>/dev/null || true)
if [ -n "$server" ] && [ "$(readlink "/proc/$server/cwd")" = "$(readlink -f "$data")" ]; then answer=0; fi
[ "$answer" -ge 2 ] || fail 'Postgres is running: stop it first (docker compose stop)'
target=''
last='9999'
if [ $# -gt 0 ]; then
  target=$(date -u -d "$1" '+%Y-%m-%d %H:%M:%S.%N+00') || fail "'$1' is no moment, such as 2026-11-21 11:59:30 UTC"
  last=$(date -u -d "$1" +%Y-%m-%dT%H%M%SZ)
fi
name=$(ls "$folder/base" | awk -v last="$last" '!/\.part$/ && $0 <= last' | tail -n 1)
[ -n "$name" ] || fail "there is no base backup${target:+ from before $1} in $folder/base"
# The newest log goes another way when an earlier restore came to lie between: the log is followed that was written at that moment.
if [ -n "$target" ]; then
  timeline=$(tar -xzOf "$folder/base/$name/base.tar.gz" backup_label | sed -n 's/^START TIMELINE: //p')
  for begun in "$folder"/archive/*.history.gz; do
    # gzip keeps when Postgres wrote it, which a copy does not.
    [ ! -e "$begun" ] || [ "$(od -An -tu4 -j4 -N4 "$begun")" -gt "$(date -u -d "$1" +%s)" ] ||
      timeline=$((16#$(basename "$begun" .history.gz)))
  done
fi

if [ -e "$data" ]; then
  kept="$data.before-$(date -u +%Y-%m-%dT%H%M%SZ)"
  mv "$data" "$kept"
  echo "restore: the data that were there are in $kept; remove them once all is well"
fi
mkdir -p "$data"
chmod 700 "$data"
tar -xzf "$folder/base/$name/base.tar.gz" -C "$data"
tar -xzf "$folder/base/$name/pg_wal.tar.gz" -C "$data/pg_wal"
# Of an earlier restore.
sed -i '/^\(restore_command\|recovery_target\)/d' "$data/postgresql.auto.conf"
archive="\"$folder/archive\""
{
  # To Postgres an exit code up to 125 is the end of the log, and it opens: only a file that is not there may be that.
  echo "restore_command = '[ -x $archive ] || exit 255; [ -e $archive/%f.gz ] || exit 1; gzip -cd $archive/%f.gz >\"%p\" || exit 255'"
  [ -z "$target" ] ||
    printf "recovery_target_%s\n" "time = '$target'" "timeline = '$timeline'" "action = 'promote'"
} >>"$data/postgresql.auto.conf"
touch "$data/recovery.signal"
# The folder around the data belongs to root in the image; the data belong to the server's user.
[ "$(id -u)" -ne 0 ] || chown -R postgres:postgres "$data"
echo "restore: base backup $name is in place; start Postgres, which replays the log ${target:+up to $target}"
