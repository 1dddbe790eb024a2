#!/usr/bin/env bash
# Installs what the tests use beside Node and npm: `npm run setup:test`. Debian and Ubuntu; as root, or with sudo.
set -euo pipefail

# Commands the tests need and the packages that bring them. Go runs its verifier, and builds Temporal's dev server where
# it is neither found nor downloaded (dev/temporal); Java and Maven bring the server that skips time. The package cryptography
# is for the verifier in Python.
needed=(redis-server:redis-server javac:default-jdk-headless mvn:maven python3:python3 php:php-cli chromium:chromium
  pg_ctlcluster:postgresql haproxy:haproxy go:golang-go promtool:prometheus
  prometheus-node-exporter:prometheus-node-exporter prometheus-blackbox-exporter:prometheus-blackbox-exporter
  curl:curl patroni:patroni etcd:etcd-server ip:iproute2 debootstrap:debootstrap slirp4netns:slirp4netns
  fish:fish zsh:zsh)
# Where Go's installer and Debian's haproxy are: the PATH of an ordinary user may not lead there.
PATH="$PATH:/usr/local/go/bin:/usr/sbin"
missing=()
for pair in "${needed[@]}"; do
  command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
# Patroni's modules for etcd and Postgres, which its package only recommends.
for module in etcd psycopg2; do
  /usr/bin/python3 -c "import $module" 2>/dev/null || missing+=("python3-$module")
done
# For the system's own Python, which may not be the first on the PATH.
python3 -c 'import cryptography' 2>/dev/null || /usr/bin/python3 -c 'import cryptography' 2>/dev/null ||
  missing+=(python3-cryptography)
# For clients in PHP, and for Python's virtual environments where the distribution's Python is the first on the PATH.
php -r 'exit(extension_loaded("mbstring") ? 0 : 1);' 2>/dev/null || missing+=(php-mbstring)
php -r 'exit(extension_loaded("curl") ? 0 : 1);' 2>/dev/null || missing+=(php-curl)
php -r 'exit((@include "GuzzleHttp/autoload.php") === false ? 1 : 0);' 2>/dev/null || missing+=(php-guzzlehttp-guzzle)
python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
[ "${#missing[@]}" -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "Missing, and no apt-get to install it with: ${missing[*]}" >&2
  exit 1
fi
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
echo "Installing ${missing[*]} ..."
apt_get=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ "${apt_get[@]}" update && "${apt_get[@]}" install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 || {
  cat "$log" >&2
  echo "Not installed: ${missing[*]}. This needs root, or sudo without a password." >&2
  exit 1
}
