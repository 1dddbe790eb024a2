#!/usr/bin/env bash
# Prints a folder with the `node` and `npm` of Node 24, which releases ship on, for the front of a PATH. Both are packages of npm, installed
# once into the tools folder. The npm is the one that comes with that Node.
set -euo pipefail

node=24.21.0 npm=11.19.1
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
