#!/usr/bin/env bash
# Builds the base images under the names that Dockerfile and docker-compose.yml use, where they are missing. Run by ../engine.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
tools=$1 here=test/containers/images
names=$({ sed -n 's/^ *image: \([a-z].*\)$/\1/p' docker-compose.yml; sed -n 's/^FROM \([a-z]*:[^ ]*\).*/\1/p' Dockerfile; } | sed 's/@.*//' | sort -u)
node=$(scripts/node-release.sh)
ui=$(sed -n 's|^temporalio/ui:||p' <<<"$names")
state=$(cat "$here"/* <(echo "$names $node") | sha256sum | cut -c1-16)
if [ "$(cat "$tools/images" 2>/dev/null)" = "$state" ] && docker image inspect -f. node:24-bookworm-slim >/dev/null 2>&1; then exit 0; fi
echo 'Making base images ...' >&2

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
cp "$here"/* "$context/"
programs=$(node_modules/.bin/tsx -e "const { findTemporalServer } = require('./dev/temporal-postgres/executables');
  findTemporalServer({ onProgress: console.error }).then(
    ({ server, sqlTool }) => console.log(server, sqlTool), (error) => { console.error(error); process.exit(1); })")
cp "${programs% *}" "$context/temporal-server" && cp "${programs#* }" "$context/temporal-sql-tool"
# Temporal's web page, with the configuration of its image.
PATH="$PATH:/usr/local/go/bin" page=github.com/temporalio/ui-server/v2
GOTOOLCHAIN=${GOTOOLCHAIN:-auto} GOBIN=$context go install -trimpath -ldflags='-s -w' "$page/cmd/server@v$ui"
mv "$context/server" "$context/ui-server"
cp "$(go mod download -json "$page@v$ui" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')/config/docker.yaml" "$context/"
ca="${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}"
cp "$ca" "$context/machine.pem"
{ echo cafile=/etc/machine.pem; for key in registry proxy https-proxy noproxy; do
    value=$(npm config get "$key" 2>/dev/null) && [ "$value" = null ] || [ -z "$value" ] || echo "$key=$value"
  done; } >"$context/npmrc"
cp "$(readlink -f "$node/node")" "$context/node"
cp -R "$node/../npm" "$context/npm"
# The files of packages do not stay in a layer.
cp /etc/apt/apt.conf.d/docker-clean "$context/" 2>/dev/null || echo 'APT::Keep-Downloaded-Packages "false";' >"$context/docker-clean"

for suite in bookworm forky; do
  docker image inspect -f. "debian:$suite" >/dev/null 2>&1 || docker import "$tools/$suite.tar" "debian:$suite" >/dev/null
done
for name in $names; do
  target=$(sed 's|:.*||; s|/|-|' <<<"$name")
  # Grafana comes neither from Debian nor from Go.
  grep -q "^FROM .* AS $target\$" "$here/Dockerfile" || { echo "There is no image for $name." >&2; continue; }
  docker build -q --target "$target" --tag "$name" "$context" >/dev/null
done
echo "$state" >"$tools/images"
