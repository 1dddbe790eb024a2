#!/usr/bin/env bash
# Prints a folder with the `node` and `npm` of a release line, for the front of a PATH: `scripts/node-release.sh 20|22|24`.
# Both are packages of npm, installed once into the tools folder. The npm is of the line that comes with that Node.
set -euo pipefail

case "${1:-}" in
  # The oldest that package.json allows.
  20) node=20.19.0 npm=10.8.2 ;;
  22) node=22.23.3 npm=10.9.9 ;;
  # What releases ship on.
  24) node=24.21.0 npm=11.19.1 ;;
  *) echo "usage: $0 20|22|24" >&2 && exit 2 ;;
esac

package="node-$(node -p 'process.platform')-$(node -p 'process.arch')"
folder="${XDG_CACHE_HOME:-$HOME/.cache}/partner-finance-quote-service/node-$node-npm-$npm"
bin="$folder/node_modules/.bin"
works() { PATH="$bin:$PATH" && [ "$("$bin/node" --version)" = "v$node" ] && [ "$("$bin/npm" --version)" = "$npm" ]; }
if ! (works) 2>/dev/null; then
  draft=$(mktemp -d)
  trap 'rm -rf "$draft" "$folder.$$"' EXIT
  npm install --prefix "$draft" --no-package-lock --ignore-scripts --loglevel=error "$package@$node" "npm@$npm" >&2
  mkdir -p "$(dirname "$folder")"
  cp -R "$draft" "$folder.$$"
  rm -rf "$folder"
  mv "$folder.$$" "$folder"
fi
echo "$bin"
