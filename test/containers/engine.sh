#!/usr/bin/env bash
# Runs a command on a machine with a container engine: Docker and Compose of Debian, with a root folder and namespaces of their own, so that
# nothing is installed on this machine, no port of it is taken and no firewall rule is written. Everything ends with the command.
#
#   bash test/containers/engine.sh shell          a shell on that machine
#   bash test/containers/engine.sh COMMAND …      runs COMMAND here, in the network of a partner outside, with `docker` on its PATH
#
# Needs Linux and root; without them it says so, and fails under CI=true only. Kept in the tools folder: root folders, base images and what builds have cached.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
export PATH="$PATH:/usr/sbin"
tools="${XDG_CACHE_HOME:-$HOME/.cache}/partner-finance-quote-service/containers"
missing() {
  echo "Not run: no container engine can be had here: $1" >&2
  [ "${CI:-}" != true ] || exit 1
  exit 0
}
[ "$(id -u)" -eq 0 ] || missing 'it needs root.'
unshare --mount --net --pid --fork true 2>/dev/null || missing 'namespaces are not allowed.'
command -v slirp4netns >/dev/null && command -v debootstrap >/dev/null ||
  missing 'slirp4netns and debootstrap are not installed (npm run setup:test).'
mkdir -p "$tools"
exec 9>"$tools/lock"
flock -n 9 || { echo 'Another engine runs; waiting for its end ...' >&2; flock 9; }

# root_folder SUITE: a small Debian, with the mirror and the proxy that this machine's apt uses.
root_folder() {
  [ ! -f "$tools/$1.tar" ] || return 0
  echo "Making a root folder of Debian's $1 ..." >&2
  rm -rf "${tools:?}/$1"
  local mirror log="$tools/$1.log"
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' 'Component: main' | grep -v security | head -1)
  # One script serves all recent suites; debootstrap may be older than the suite.
  debootstrap --variant=minbase --include=ca-certificates "$1" "$tools/$1" "$mirror" /usr/share/debootstrap/scripts/sid >"$log" 2>&1 ||
    { tail -5 "$log" >&2; return 1; }
  # A mirror may stand still for longer than its lists hold.
  { apt-config dump Acquire::http Acquire::https | grep -i proxy || true
    echo 'Acquire::Check-Valid-Until "false";'; } >"$tools/$1/etc/apt/apt.conf.d/00machine"
  rm -rf "${tools:?}/$1"/var/lib/apt/lists/* "$tools/$1"/var/cache/apt/archives/*
  tar -C "$tools/$1" -cf "$tools/$1.part" . && mv "$tools/$1.part" "$tools/$1.tar"
}
root_folder bookworm & bookworm=$!
root_folder forky
wait "$bookworm"
machine="$tools/machine"
if [ ! -x "$machine/usr/sbin/dockerd" ]; then
  echo 'Installing the engine into its root folder ...' >&2
  rm -rf "$machine.part" && cp -a "$tools/forky" "$machine.part" && cp -L /etc/resolv.conf "$machine.part/etc/resolv.conf"
  # No service starts in there.
  printf '#!/bin/sh\nexit 101\n' >"$machine.part/usr/sbin/policy-rc.d" && chmod +x "$machine.part/usr/sbin/policy-rc.d"
  chroot "$machine.part" sh -c 'apt-get update && apt-get install -y --no-install-recommends docker.io docker-cli docker-compose docker-buildx \
    iptables iproute2 curl openssl procps' >"$tools/machine.log" 2>&1 || { tail -5 "$tools/machine.log" >&2; exit 1; }
  rm -rf "$machine" && mv "$machine.part" "$machine"
fi

# Its first process; whatever runs there ends with it, and it with this script.
work=$(mktemp -d)
setpriv --pdeathsig KILL unshare --mount --net --pid --fork --kill-child bash -euc '
  machine=$1 images=$2
  mount --make-rprivate /
  mount --bind "$machine" "$machine" && cd "$machine"
  mount -t proc proc proc && mount -t sysfs sysfs sys && mount --rbind /sys/fs/cgroup sys/fs/cgroup && mount --rbind /dev dev
  mount -t tmpfs tmpfs run && mkdir -p "$images" var/lib/docker old && mount --bind "$images" var/lib/docker
  # Folders of this machine that no system consists of: the project is there under its own path.
  for folder in /*; do
    case $folder in /bin | /boot | /dev | /etc | /lib* | /lost+found | /proc | /run | /sbin | /sys | /usr | /var) continue ;; esac
    [ -d "$folder" ] && [ ! -L "$folder" ] && mkdir -p ".$folder" && mount --rbind "$folder" ".$folder"
  done
  pivot_root . old && umount -l /old
  # An exporter mounts the root as rslave.
  mount --make-rshared /
  rm -f /etc/resolv.conf && echo nameserver 10.0.2.3 >/etc/resolv.conf
  /usr/sbin/ip link set lo up
  exec sleep infinity' bash "$machine" "$tools/root" 9>&- &
parent=$!
finish() {
  code=$?
  trap - EXIT
  if [ -n "${engine:-}" ]; then
    docker ps -q 2>/dev/null | xargs -r docker kill >/dev/null 2>&1 || true
    bash "$work/dockerd" stop 2>/dev/null || true
  fi
  kill -9 "$parent" 2>/dev/null || true
  wait "$parent" 2>/dev/null || true
  for at in /sys/fs/cgroup/quotes-containers /sys/fs/cgroup/*/quotes-containers; do
    [ ! -d "$at" ] || find "$at" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
for _ in $(seq 100); do
  engine=$(pgrep -P "$parent" || true)
  [ -z "$engine" ] || [ "$(cat "/proc/$engine/comm")" != sleep ] || break
  sleep 0.1
done

# The way to the registries, for builds; nothing that listens on this machine is reached through it.
nsenter -t "$engine" -p slirp4netns --configure --mtu=65520 --disable-host-loopback "$engine" tap0 >"$work/slirp.log" 2>&1 9>&- &
disown
# A partner: joined to the machine by a cable, both with addresses that count as public.
setpriv --pdeathsig KILL unshare --net sleep infinity 9>&- &
outside=$!
disown
sleep 0.3
nsenter -t "$engine" -n sh -euc 'ip link add cable type veth peer name cable netns "$1"; ip link set cable up
  ip addr add 93.184.215.1/24 dev cable; ip addr add 2001:db8:93::1/64 dev cable nodad
  ip addr add 10.0.0.5/24 dev cable' sh "$outside"
nsenter -t "$outside" -n sh -euc 'ip link set lo up; ip link set cable up
  ip addr add 93.184.215.14/24 dev cable; ip addr add 2001:db8:93::14/64 dev cable nodad
  ip addr add 10.0.0.9/24 dev cable'

mkdir "$work/bin"
# Also for the test, which stops and starts the engine.
cat >"$work/dockerd" <<END
set -eu
on() { nsenter -t $engine -m -n -p env PATH=/usr/sbin:/usr/bin "\$@"; }
case \$1 in
  start) on dockerd --cgroup-parent=/quotes-containers --pidfile /run/docker.pid >>$work/dockerd.log 2>&1 9>&- &
    for _ in \$(seq 600); do on docker version >/dev/null 2>&1 && exit; sleep 0.1; done; tail -5 $work/dockerd.log >&2; exit 1 ;;
  stop) on sh -c 'kill \$(cat /run/docker.pid); for _ in \$(seq 1800); do [ -e /run/docker.pid ] || exit 0; sleep 0.1; done; exit 1' ;;
esac
END
# `machine COMMAND …` runs it on that machine, in the folder of the same name.
printf '#!/bin/sh\nexec nsenter -t %s -m -n -p env PATH=/usr/sbin:/usr/bin DOCKER_CONFIG=/run/docker-config sh -c '\''cd "$0" && exec "$@"'\'' "$PWD" "$@"\n' \
  "$engine" >"$work/bin/machine"
printf '#!/bin/sh\nexec machine docker "$@"\n' >"$work/bin/docker"
chmod +x "$work/bin"/*
export PATH="$work/bin:$PATH" ENGINE="$work/dockerd" ENGINE_PID="$engine"
bash "$ENGINE" start
# Of an engine that was killed.
docker ps -aq | xargs -r docker rm -fv >/dev/null
docker images --format '{{.Repository}}:{{.Tag}}' | sed -n '/^partner-finance-quote-service:/p; /:next$/p' | xargs -r docker rmi -f >/dev/null
docker image prune -f >/dev/null
docker builder prune -f --keep-storage 8GB >/dev/null 2>&1 || true
docker network prune -f >/dev/null && docker volume prune -af >/dev/null
bash test/containers/images/make.sh "$tools"

if [ "$1" = shell ]; then
  machine bash
else
  nsenter -t "$outside" -n "$@"
fi
