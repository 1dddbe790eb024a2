#!/bin/bash
# Postgres' archive_command: keeps a finished file of the write-ahead log, compressed, as a quiet minute leaves most of it empty.
# Arguments: path and name of the file. It fails rather than write over another file of that name.
set -euo pipefail
kept="${BACKUPS:-/backups}/archive/$2.gz"
if [ -e "$kept" ]; then
  # Postgres asks once more when it crashed before it noted the first time.
  gzip -cd "$kept" | cmp -s - "$1" || { echo "archive: $kept is there, and is another file" >&2; exit 1; }
  sync "${kept%/*}"
  exit 0
fi
# A name of its own: two servers of a cluster may archive the same file at once.
part=$(mktemp "$kept.XXXXXX")
trap 'rm -f "$part"' EXIT
gzip -c "$1" >"$part"
sync "$part"
mv "$part" "$kept"
# Its name too, before Postgres removes its own copy.
sync "${kept%/*}"
