import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** As the files in deploy/cluster name them. c has no Postgres, no Temporal and no process of ours. */
export const ADDRESSES = { a: '10.0.0.11', b: '10.0.0.12', c: '10.0.0.13' } as const;
export type MachineName = keyof typeof ADDRESSES;
/** The machines that have a proxy, Postgres, Temporal, an API process and a worker. */
export const TWINS = ['a', 'b'] as const;
export const MACHINES = Object.keys(ADDRESSES) as MachineName[];

/** Of this program, which stands for partners and lenders. */
export const GATEWAY = '10.0.0.1';
/** A public address, which leads nowhere but here: production's rules refuse webhooks to any other. */
export const PARTNER_ADDRESS = '93.184.215.14';

const SYSCTL = join(__dirname, '../../deploy/cluster/sysctl.conf');

/** Must run in a network and a mount namespace of its own. Each machine gets a network namespace, and a cable to one switch. */
export function openNetwork(): void {
  // `ip netns` keeps its namespaces in /run.
  sh('mount -t tmpfs tmpfs /run && ip link set lo up');
  sh(`ip addr add ${PARTNER_ADDRESS}/32 dev lo`);
  sh(`ip link add switch type bridge && ip addr add ${GATEWAY}/24 dev switch && ip link set switch up`);
  for (const [name, address] of Object.entries(ADDRESSES))
    sh(`ip netns add ${name} && ip -n ${name} link set lo up
      ip link add cable-${name} type veth peer name eth0 netns ${name}
      ip link set cable-${name} master switch up
      ip -n ${name} addr add ${address}/24 dev eth0 && ip -n ${name} link set eth0 up
      ip -n ${name} route add default via ${GATEWAY}
      ip netns exec ${name} sh -c '${[...sysctl(), 'echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start'].join('; ')}'`);
}

const sysctl = () =>
  [...readFileSync(SYSCTL, 'utf8').matchAll(/^([a-z].*?) = (.*)$/gm)].map(
    ([, name = '', value]) => `echo ${value} >/proc/sys/${name.replaceAll('.', '/')}`,
  );

/** Pulls the cable of a machine: what runs on it continues, and reaches no other machine. */
export const pullCable = (name: MachineName) => sh(`ip link set cable-${name} down`);
export const plugCable = (name: MachineName) => sh(`ip link set cable-${name} up`);

export function sh(script: string): void {
  execFileSync('sh', ['-euc', script], { stdio: ['ignore', 'ignore', 'inherit'] });
}
