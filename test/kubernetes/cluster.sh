#!/usr/bin/env bash
# Runs a command beside a Kubernetes cluster: a control plane in a "hub", three nodes, and a fourth for stores and ingress, each in namespaces of
# its own, so that nothing listens on this machine and no firewall rule is written. Everything ends with the command.
#
#   bash test/kubernetes/cluster.sh build         once: Kubernetes, CoreDNS, metrics-server and an enforcer of network policies, by Go; a root folder of Debian
#   bash test/kubernetes/cluster.sh built         ends with 0 when all of it is there
#   bash test/kubernetes/cluster.sh shell         a shell with kubectl and helm, in the network of a partner outside
#   bash test/kubernetes/cluster.sh COMMAND …     runs COMMAND there
#
# Needs Linux and root. Where something is missing it says so, and that it did not run.
# Addresses: hub 10.89.0.1, node N 10.89.0.(10+N), pods 10.244.N.0/24, services 10.96.0.0/16; outside 93.184.215.14, which reaches the ingress at
# 93.184.215.1:443 and, as a machine of lenders, at 10.0.0.5:8444.
set -euo pipefail
self=$(realpath "${BASH_SOURCE[0]}")
cd "$(dirname "$self")/../.."
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
export PATH="$PATH:/usr/sbin:/sbin:/usr/local/go/bin"
W="${XDG_CACHE_HOME:-$HOME/.cache}/partner-finance-quote-service/kubernetes"
kubernetes=1.37.2 coredns=1.15.0 policies=0.8.0 metrics=0.9.0
nodes=4 hub_ip=10.89.0.1
do=${1:?see the top of this file}
built() {
  local name
  for name in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy coredns kube-network-policies metrics-server kubectl; do
    [ -x "$W/bin/$name" ] || return 1
  done
  [ -f "$W/node.done" ]
}

# Modules that Kubernetes needs keep the versions that it has, so that they are compiled once.
# beside NAME MODULES@VERSIONS PACKAGE [MAIN]: builds a program; MAIN is the text of its main package.
beside() {
  [ ! -x "$W/bin/$1" ] || return 0
  mkdir -p "$W/go/$1" && cd "$W/go/$1"
  cp ../kubernetes/go.mod ../kubernetes/go.sum .
  [ -z "${4:-}" ] || printf '%s\n' "$4" >main.go
  # shellcheck disable=SC2086
  go get $2 >&2
  local required part version
  required() { grep -E '^\s.* v' "$1" | awk '{print $1, $2}' | sort; }
  comm -13 <(required ../kubernetes/go.mod) <(required go.mod) | while read -r part _; do
    version=$(awk -v part="$part" '$1 == part {print $2}' ../kubernetes/go.mod)
    case $part in k8s.io/*) ;; *) [ -z "$version" ] || echo "replace $part => $part $version" >>go.mod ;; esac
  done
  echo "Building $1 ..." >&2
  nice -n 19 go build -p 2 -trimpath -ldflags '-s -w' -o "$W/bin/$1" "$3"
}
build() {
  mkdir -p "$W/bin" "$W/go/kubernetes"
  root_folder & local root=$! flags='-s -w' part name at
  # Without a version the programs call themselves v0.0.0 and refuse each other.
  for part in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $part.gitVersion=v$kubernetes -X $part.gitMajor=${kubernetes%%.*} -X $part.gitMinor=$(cut -d. -f2 <<<"$kubernetes") -X $part.gitTreeState=clean"
  done
  export GOTOOLCHAIN=${GOTOOLCHAIN:-auto} GOFLAGS='-buildvcs=false -mod=mod' CGO_ENABLED=0 GOGC=${GOGC:-300}
  cd "$W/go/kubernetes"
  if [ ! -f go.mod ]; then
    at=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    local staging="v0.${kubernetes#*.}"
    # Its go.mod leads to folders of its repository; the same code is published under the names of modules. The samples are not needed.
    { printf 'module cluster.local/kubernetes\n\n'; grep -E '^(go|godebug) ' "$at/go.mod"
      printf 'require k8s.io/kubernetes v%s\n' "$kubernetes"
      sed -n "s|^\t\(k8s.io/[a-z-]*\) => ./staging.*|replace \1 => \1 $staging|p" "$at/go.mod"
      sed -n "/k8s.io\/sample-/d; s|^\t\(k8s.io/[a-z-]*\) v0.0.0\$|require \1 $staging|p" "$at/go.mod"; } >go.mod.part
    cp "$at/go.sum" . && mv go.mod.part go.mod
  fi
  for name in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy; do
    [ -x "$W/bin/$name" ] || { echo "Building $name ..." >&2; nice -n 19 go build -p 2 -trimpath -ldflags "$flags" -o "$W/bin/$name" "k8s.io/kubernetes/cmd/$name"; }
  done
  # The nri that it asks for does not compile with what Kubernetes needs.
  beside kube-network-policies "sigs.k8s.io/kube-network-policies@v$policies github.com/containerd/nri@v0.12.0" sigs.k8s.io/kube-network-policies/cmd
  beside metrics-server "sigs.k8s.io/metrics-server@v$metrics" sigs.k8s.io/metrics-server/cmd/metrics-server
  # With the plug-ins that a cluster needs, of its fifty.
  beside coredns "github.com/coredns/coredns@v$coredns" . 'package main
import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)
func init() { dnsserver.Directives = []string{"errors", "kubernetes", "forward"} }
func main() { coremain.Run() }'
  wait "$root"
}
root_folder() {
  [ ! -f "$W/node.done" ] || return 0
  echo "Making a root folder for nodes ..." >&2
  local mirror log="$W/node.log"
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' 'Component: main' | grep -v security | head -1)
  rm -rf "$W/node"
  nice -n 19 debootstrap --variant=minbase --include=ca-certificates,containerd,runc,containernetworking-plugins,iptables,nftables,conntrack,iproute2,kmod,procps,socat,util-linux,mount \
    forky "$W/node" "$mirror" /usr/share/debootstrap/scripts/sid >"$log" 2>&1 || { tail -5 "$log" >&2; return 1; }
  cp -L /etc/resolv.conf "$W/node/etc/resolv.conf"
  # A mirror may stand still for longer than its lists hold.
  { apt-config dump Acquire::http Acquire::https | grep -i proxy || true; echo 'Acquire::Check-Valid-Until "false";'; } >"$W/node/etc/apt/apt.conf.d/00machine"
  # Unpacked only: their scripts want a system that runs.
  chroot "$W/node" sh -euc 'apt-get update; cd /tmp; apt-get download etcd-server kubectl; for one in *.deb; do dpkg -x "$one" /; done; rm -f ./*.deb' >>"$log" 2>&1 ||
    { tail -5 "$log" >&2; return 1; }
  ln -f "$W/node/usr/bin/kubectl" "$W/bin/kubectl"
  touch "$W/node.done"
}

certificates() {
  local P=$W/run/pki n
  mkdir -p "$P" && cd "$P"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=cluster -keyout ca.key -out ca.crt 2>/dev/null
  openssl genrsa -out accounts.key 2048 2>/dev/null
  openssl rsa -in accounts.key -pubout -out accounts.pub 2>/dev/null
  # one NAME SUBJECT ADDRESSES: a certificate, and a file for clients.
  one() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$2" -keyout "$1.key" -out "$1.csr" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out "$1.crt" \
      -extfile <(printf 'extendedKeyUsage=clientAuth,serverAuth\n%s\n' "${3:+subjectAltName=$3}") 2>/dev/null
    printf '{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":"https://%s:6443","certificate-authority":"%s"}}],
"users":[{"name":"u","user":{"client-certificate":"%s","client-key":"%s"}}]}\n' "$hub_ip" "$P/ca.crt" "$P/$1.crt" "$P/$1.key" >"$1.conf"
  }
  one apiserver /CN=kube-apiserver "IP:$hub_ip,IP:127.0.0.1,IP:10.96.0.1,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
  one kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
  one front /CN=front
  one admin /O=system:masters/CN=admin
  one controller-manager /CN=system:kube-controller-manager
  one scheduler /CN=system:kube-scheduler
  one proxy /CN=system:kube-proxy
  openssl rand -hex 16 | tr -d '\n' >token && echo "$(cat token),kube-network-policies,1,system:masters" >tokens.csv
  for n in $(seq "$nodes"); do one "node$n" "/O=system:nodes/CN=system:node:node$n" "IP:10.89.0.$((10 + n)),DNS:node$n"; done
}

# The first process of the hub. Everything else descends from it and ends with it.
hub() {
  mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount --rbind "$W/run/cgroup" /sys/fs/cgroup
  ip link set lo up
  ip link add hub type bridge && ip link set hub up
  for address in $hub_ip/24 93.184.215.1/24 10.0.0.5/24; do ip addr add "$address" dev hub; done
  echo 1 >/proc/sys/net/ipv4/ip_forward
  # Outside: the addresses of test/containers/partner.ts.
  unshare --net sleep infinity & local far=$!
  sleep 0.3
  ip link add far type veth peer name cable netns $far && ip link set far master hub up
  nsenter -t $far -n sh -euc 'ip link set lo up; ip link set cable up; ip addr add 93.184.215.14/24 dev cable; ip addr add 10.0.0.9/24 dev cable; ip route add default via 93.184.215.1'
  # To the services of surroundings.ts.
  chroot "$W/node" nft -f - <<'END'
table ip doors {
  chain before {
    type nat hook prerouting priority dstnat; policy accept;
    ip daddr 93.184.215.1 tcp dport 443 dnat to 10.96.0.100:443
    ip daddr 10.0.0.5 tcp dport 8444 dnat to 10.96.0.101:8444
  }
}
END
  # Debian's etcd wants a newer C library than this machine may have.
  mkdir -p "$W/node/var/lib/etcd" && mount --bind "$W/run/etcd" "$W/node/var/lib/etcd"
  chroot "$W/node" etcd --data-dir /var/lib/etcd --unsafe-no-fsync >"$W/run/log/etcd" 2>&1 &
  local P=$W/run/pki n it
  "$W/bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --advertise-address=$hub_ip --secure-port=6443 --service-cluster-ip-range=10.96.0.0/16 \
    --client-ca-file="$P/ca.crt" --tls-cert-file="$P/apiserver.crt" --tls-private-key-file="$P/apiserver.key" \
    --service-account-key-file="$P/accounts.pub" --service-account-signing-key-file="$P/accounts.key" --service-account-issuer=https://kubernetes.default.svc \
    --kubelet-client-certificate="$P/kubelet-client.crt" --kubelet-client-key="$P/kubelet-client.key" --kubelet-certificate-authority="$P/ca.crt" \
    --kubelet-preferred-address-types=InternalIP --requestheader-client-ca-file="$P/ca.crt" --requestheader-allowed-names=front \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$P/front.crt" --proxy-client-key-file="$P/front.key" --enable-aggregator-routing=true --token-auth-file="$P/tokens.csv" --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true >"$W/run/log/kube-apiserver" 2>&1 &
  # Before the API server has made their roles they end.
  after() { local log=$W/run/log/${1##*/}; until [ -e "$W/run/ready" ]; do sleep 0.2; done; exec "$@" >"$log" 2>&1; }
  after "$W/bin/kube-controller-manager" --kubeconfig="$P/controller-manager.conf" --root-ca-file="$P/ca.crt" --service-account-private-key-file="$P/accounts.key" \
    --use-service-account-credentials --leader-elect=false --service-cluster-ip-range=10.96.0.0/16 \
    --authentication-kubeconfig="$P/controller-manager.conf" --authorization-kubeconfig="$P/controller-manager.conf" --horizontal-pod-autoscaler-sync-period=5s &
  after "$W/bin/kube-scheduler" --kubeconfig="$P/scheduler.conf" --leader-elect=false --authentication-kubeconfig="$P/scheduler.conf" --authorization-kubeconfig="$P/scheduler.conf" &
  # By the service of surroundings.ts.
  after "$W/bin/metrics-server" --secure-port=4443 --metric-resolution=10s --kubelet-request-timeout=5s --kubeconfig="$P/admin.conf" --authentication-kubeconfig="$P/admin.conf" --authorization-kubeconfig="$P/admin.conf" \
    --kubelet-certificate-authority="$P/ca.crt" --kubelet-preferred-address-types=InternalIP --tls-cert-file="$P/apiserver.crt" --tls-private-key-file="$P/apiserver.key" &
  # The partner has a name server, as everybody outside.
  printf '.:53 {\n  errors\n  kubernetes cluster.local {\n    kubeconfig %s\n  }\n  forward . 93.184.215.14\n}\n' "$P/admin.conf" >"$W/run/Corefile"
  after "$W/bin/coredns" -conf "$W/run/Corefile" &
  for n in $(seq "$nodes"); do
    unshare --mount --net --pid --uts --ipc --fork --kill-child bash "$self" .node "$n" >"$W/run/log/node$n" 2>&1 & it=$!
    sleep 0.5
    ip link add "to$n" type veth peer name eth0 netns $it && ip link set "to$n" master hub up
    ip route add "10.244.$n.0/24" via "10.89.0.$((10 + n))"
    touch "$W/run/node$n.cable"
  done
  # By the node that no test takes away.
  ip route add 10.96.0.0/16 via "10.89.0.$((10 + nodes))"
  echo $far >"$W/run/outside.part" && mv "$W/run/outside.part" "$W/run/outside"
  while true; do wait -n || true; sleep 1; done
}

# Unpacks images as nodes have them: those of stores and ingress when they are others than before, and ours. A layer that is there stays.
images() {
  local at=$W/images/part lists=ours list
  rm -rf "$at"
  if [ -d "$W/images/all" ]; then mv "$W/images/all" "$at"; else mkdir "$at" && lists='theirs ours'; fi
  mount --make-rprivate / && mount --bind "$W/node" "$W/node" && cd "$W/node"
  mount -t proc proc proc && mount --rbind /dev dev && mount -t tmpfs tmpfs run && mkdir -p ".$W" var/lib/containerd && mount --rbind "$W" ".$W" && mount --bind "$at" var/lib/containerd
  chroot . containerd >"$W/node.log" 2>&1 &
  until chroot . ctr version >/dev/null 2>&1; do sleep 0.1; done
  for list in $lists; do chroot . ctr -n k8s.io images import "$W/images/$list.tar" >/dev/null; done
  # With it go layers that no image has any more.
  chroot . ctr -n k8s.io images tag cluster.local/pause:1 cluster.local/none:1 >/dev/null && chroot . ctr -n k8s.io images rm --sync cluster.local/none:1 >/dev/null
  kill %1 && wait %1 || true
  mv "$at" "$W/images/all"
}

# The first process of a node.
node() {
  local n=$1 here=$W/run/node$1 P=$W/run/pki m at to list name value taint= system=
  hostname "node$n"
  until [ -e "$W/run/node$n.cable" ]; do sleep 0.1; done
  ip link set lo up && ip addr add "10.89.0.$((10 + n))/24" dev eth0 && ip link set eth0 up && ip route add default via $hub_ip
  for m in $(seq "$nodes"); do [ "$m" = "$n" ] || ip route add "10.244.$m.0/24" via "10.89.0.$((10 + m))"; done
  mount --make-rprivate / && mount --rbind "$W/node" "$W/node" && mount --make-private "$W/node" && cd "$W/node"
  mount -t proc proc proc && mount -t sysfs sysfs sys && mount --rbind "$W/run/cgroup" sys/fs/cgroup && mount --rbind /dev dev
  mount -t tmpfs tmpfs run && mount -t tmpfs tmpfs tmp && mkdir -p ".$W" old && mount --rbind "$W" ".$W"
  # The nodes share one root folder: what a node writes is its own. Layers of images, which nobody changes, are lent to each.
  mkdir -p "$here/var/lib/containerd" && (cd "$W/images/all" && tar -c --exclude='*/blobs/*' --exclude='*/snapshots/*' . | tar -x -C "$here/var/lib/containerd")
  (cd "$W/images/all" && printf '%s\n' ./*content*/blobs/* ./*overlayfs/snapshots/*) | while read -r at; do
    mkdir "$here/var/lib/containerd/$at" && mount --bind "$W/images/all/$at" "$here/var/lib/containerd/$at"
  done
  for at in var/lib/kubelet var/lib/containerd var/lib/cni etc/cni/net.d var/log; do mkdir -p "$at" "$here/$at" && mount --rbind "$here/$at" "$at"; done
  pivot_root . old && umount -l /old
  mount --make-rshared /
  # The kubelet writes these for the whole machine, unless they are as it wants them: it is shown files that are.
  mkdir -p /run/sysctl
  while read -r name value; do echo "$value" >"/run/sysctl/${name//\//.}" && mount --bind "/run/sysctl/${name//\//.}" "/proc/sys/$name"; done <<<'vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000'
  echo 1 >/proc/sys/net/ipv4/ip_forward
  # `ptp`: what pods of one node say to each other is routed, and so seen by whoever enforces network policies.
  cat >/etc/cni/net.d/10-ptp.conflist <<END
{ "cniVersion": "1.0.0", "name": "pods", "plugins": [{ "type": "ptp", "ipMasq": false,
  "ipam": { "type": "host-local", "ranges": [[{ "subnet": "10.244.$n.0/24" }]], "routes": [{ "dst": "0.0.0.0/0" }] } }] }
END
  # Out of the cluster pods go by the node's address.
  nft -f - <<'END'
table ip way_out {
  chain post {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr 10.244.0.0/16 ip daddr != { 10.244.0.0/16, 10.96.0.0/16 } masquerade
  }
}
END
  cat >/run/containerd.toml <<END
version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'cluster.local/pause:1'
[plugins.'io.containerd.cri.v1.runtime']
  # Without CAP_SYS_RESOURCE nobody gets a lower score than we have.
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/usr/lib/cni']
  conf_dir = '/etc/cni/net.d'
END
  containerd --config /run/containerd.toml >/var/log/containerd 2>&1 &
  [ "$n" != "$nodes" ] || taint=--register-with-taints=stores=true:NoSchedule
  for at in /sys/fs/cgroup/*/; do
    case $at in */unified/) continue ;; esac
    mkdir -p "${at}quotes-kubernetes/node$n"
    # An empty list of processors takes no process.
    for list in cpuset.cpus cpuset.mems; do
      [ ! -f "$at$list" ] || for to in quotes-kubernetes "quotes-kubernetes/node$n"; do cat "$at$list" >"$at$to/$list"; done
    done
  done
  # Beside other work on this machine a whole cluster has the weight of one process, unless it is given more.
  for at in /sys/fs/cgroup/cpu/quotes-kubernetes /sys/fs/cgroup/cpu/quotes-kubernetes/node*; do echo 20480 >"$at/cpu.shares"; done
  # Of the size that the page promises: 2 CPUs and 4 GiB, of which its system takes a part.
  [ "$n" = "$nodes" ] || system="systemReserved: { cpu: $((1000 * $(nproc) - 1900))m, memory: $(($(awk '/MemTotal/ { print int($2 / 1024) }' /proc/meminfo) - 3072))Mi }"
  cat >/run/kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /quotes-kubernetes/node$n
failSwapOn: false
authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: $P/ca.crt } }
authorization: { mode: Webhook }
tlsCertFile: $P/node$n.crt
tlsPrivateKeyFile: $P/node$n.key
clusterDomain: cluster.local
clusterDNS: [$hub_ip]
seccompDefault: true
$system
# The disk is the machine's.
evictionHard: { memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1% }
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
END
  until [ -e "$W/run/ready" ]; do sleep 0.2; done
  # It ends when containerd is not ready yet, and as under systemd it is started again.
  until "$W/bin/kubelet" --config=/run/kubelet.yaml --kubeconfig="$P/node$n.conf" --node-ip="10.89.0.$((10 + n))" --hostname-override="node$n" $taint; do sleep 1; done >/var/log/kubelet 2>&1 &
  # What a pod has logged is kept for whoever asks why a step failed: the kubelet removes it with the pod.
  while sleep 2; do cp -alT /var/log/pods /var/log/kept 2>/dev/null || true; done &
  "$W/bin/kube-proxy" --kubeconfig="$P/proxy.conf" --hostname-override="node$n" --proxy-mode=nftables --cluster-cidr=10.244.0.0/16 --conntrack-max-per-core=0 \
    --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0 >/var/log/kube-proxy 2>&1 &
  # It decides on the first packet of each connection of a pod. Where the kernel has no queues for nftables, as here, its own rules fail, and
  # these hand it the packets. The node itself, whose kubelet probes, is not asked.
  iptables-legacy -t mangle -A POSTROUTING -m owner --uid-owner 0 -j ACCEPT
  for to in -s -d; do iptables-legacy -t mangle -A POSTROUTING $to 10.244.0.0/16 -m conntrack --ctstate NEW -j NFQUEUE --queue-num 100; done
  # As it would find them in a pod.
  mkdir -p /run/secrets/kubernetes.io/serviceaccount && cp "$P/ca.crt" "$P/token" /run/secrets/kubernetes.io/serviceaccount/
  KUBERNETES_SERVICE_HOST=$hub_ip KUBERNETES_SERVICE_PORT=6443 "$W/bin/kube-network-policies" --hostname-override="node$n" >/var/log/kube-network-policies 2>&1 &
  while true; do wait -n || true; sleep 1; done
}

case $do in
.hub) hub; exit ;;
.node) node "$2"; exit ;;
.images) images; exit ;;
esac
missing() {
  echo "Not run: $1" >&2
  [ "$do" != built ]
  exit
}
[ "$(id -u)" -eq 0 ] || missing 'it needs root.'
unshare --mount --net --pid --fork true 2>/dev/null || missing 'namespaces are not allowed.'
[ -d /sys/fs/cgroup/memory ] || missing 'it was only tried with version 1 of control groups.'
command -v debootstrap >/dev/null || missing 'debootstrap is not installed (npm run setup:test).'
if ! built; then
  [ "$do" = build ] || missing 'Kubernetes is not built on this machine (bash test/kubernetes/cluster.sh build: ten minutes of two idle cores).'
  (build)
fi
case $do in build | built) exit ;; esac
helm=$(node_modules/.bin/tsx -e "require('./test/support/helm').findHelm().then(console.log)")

exec 8>"$W/lock"
flock -n 8 || { echo 'Another cluster runs; waiting for its end ...' >&2; flock 8; }
mkdir -p "$W/images"
files() { git ls-files -z --cached --others --exclude-standard -- "$@"; }
inputs=$({ files . ':!.ci' ':!test' ':!bench' ':!docs/operations' ':!deploy/helm'; files test/containers test/kubernetes/images.sh; } | xargs -0 cat 2>/dev/null | sha256sum)
if [ "$(cat "$W/images/inputs" 2>/dev/null)" != "$inputs" ]; then
  bash test/containers/engine.sh bash test/kubernetes/images.sh "$W/images" 8>&-
  unshare --mount --pid --fork --kill-child bash "$self" .images 8>&-
  echo "$inputs" >"$W/images/inputs"
fi
end() {
  local code=$? at
  trap - EXIT
  [ -z "${first:-}" ] || kill -KILL "$first" 2>/dev/null || true
  wait "${parent:-}" 2>/dev/null || true
  for at in /sys/fs/cgroup/*/quotes-kubernetes; do
    [ ! -d "$at" ] || for _ in $(seq 20); do find "$at" -depth -type d -exec rmdir {} + 2>/dev/null || true; [ -d "$at" ] || break; sleep 0.1; done
  done
  [ "$code" -eq 0 ] || { rm -rf "$W/last-log" && cp -r "$W/run/log" "$W/last-log" 2>/dev/null; for at in "$W"/run/node*/var/log; do cp -r "$at" "$W/last-log/of-$(basename "$(dirname "$(dirname "$at")")")" 2>/dev/null || true; done; }
  rm -rf "$W/run"
  exit "$code"
}
trap end EXIT
rm -rf "$W/run" && mkdir -p "$W"/run/{etcd,log,cgroup} && chmod 700 "$W/run/etcd"
(certificates)
setpriv --pdeathsig KILL unshare --mount --net --pid --ipc --fork --kill-child \
  bash -c 'mount --make-rprivate /; mount --rbind /sys/fs/cgroup "$2/run/cgroup"; exec bash "$1" .hub' bash "$self" "$W" >"$W/run/log/hub" 2>&1 8>&- &
parent=$!
for _ in $(seq 300); do [ -e "$W/run/outside" ] && break; sleep 0.1; done
first=$(pgrep -P "$parent" | head -1)
# The hub counts its processes by itself: here the one with its number in there.
outside=$({ grep -slE "^NSpid:.*\s$(cat "$W/run/outside")\$" /proc/[0-9]*/status || true; } | while read -r at; do
  [ "$(readlink "${at%/status}/ns/pid")" != "$(readlink "/proc/$first/ns/pid")" ] || echo "$at" | cut -d/ -f3; done | head -1)
export KUBECONFIG="$W/run/pki/admin.conf" PATH="$W/bin:${helm%/*}:$PATH"
in_hub() { nsenter -t "$first" -n "$@"; }
for _ in $(seq 600); do in_hub kubectl get --raw /readyz >/dev/null 2>&1 && break; sleep 0.2; done
touch "$W/run/ready"
for _ in $(seq 60); do
  # shellcheck disable=SC2046
  in_hub kubectl wait --for=condition=Ready $(seq -f node/node%g "$nodes") --timeout=60s >/dev/null 2>&1 && break
  sleep 1
done
in_hub kubectl get nodes
[ "$(in_hub kubectl get nodes --no-headers | grep -c ' Ready')" = "$nodes" ] || { echo 'A node did not become ready.' >&2; exit 1; }
if [ "$do" = shell ]; then nsenter -t "$outside" -n bash; else nsenter -t "$outside" -n "$@"; fi
