#!/usr/bin/env bash
# Writes the images that the nodes get: ours by Dockerfile, as two builds; those of stores and ingress as test/containers makes them. Run by cluster.sh in its engine.
set -euo pipefail
to=$1
docker_build() { docker build -q "$@" >/dev/null; }
# Digests are those of the real base images (renovate.json).
sed 's/@sha256:[0-9a-f]*//' Dockerfile | docker_build --tag registry.example/quotes:0.1.0 --file - .
printf 'FROM registry.example/quotes:0.1.0\nENV BUILT=again\n' | docker_build --tag registry.example/quotes:0.1.1 -
# It holds the network of a pod.
printf 'FROM debian:bookworm\nENTRYPOINT ["sleep", "infinity"]\n' | docker_build --tag cluster.local/pause:1 -
docker save registry.example/quotes:0.1.0 registry.example/quotes:0.1.1 cluster.local/pause:1 >"$to/ours.tar"
mapfile -t theirs < <(sed -n 's/^ *image: \(postgres\|redis\|haproxy\|temporalio\/server\|temporalio\/admin-tools\)\(:[^@]*\).*$/\1\2/p' docker-compose.yml | sort -u)
state=$(docker image inspect --format '{{.Id}}' "${theirs[@]}" | sha256sum)
[ "$(cat "$to/theirs.ids" 2>/dev/null)" = "$state" ] || { rm -rf "$to/all" && docker save "${theirs[@]}" >"$to/theirs.tar" && echo "$state" >"$to/theirs.ids"; }
