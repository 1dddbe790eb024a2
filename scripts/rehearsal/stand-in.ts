import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Service } from './compose';

/** A running service. */
export interface Started {
  readonly service: Service;
  readonly child: ChildProcess;
  readonly ended: Promise<number | string>;
  readonly startedAt: number;
}

/** In place of a container engine. */
export interface StandIn {
  /** Starts a service as the compose file has it: its addresses, names, paths, user, read-only root. */
  start(service: Service, options?: StartOptions): Started;
  /** Of a service, on its networks. */
  addressesOf(service: Service): string[];
  /** Runs the health check of a service inside. @returns whether it passed. */
  healthy(started: Started): boolean;
}

export interface StartOptions {
  /** In place of what the compose file says. */
  readonly argv?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Besides those of the compose file. */
  readonly mounts?: Service['mounts'];
  /** Gets standard output, beside the log. */
  readonly onOutput?: (text: string) => void;
}

export interface StandInOptions {
  readonly directory: string;
  /** What the image has in /app. */
  readonly app: string;
  /** Folder with temporal-server and temporal-sql-tool. */
  readonly temporal: string;
  readonly postgresBin: string;
  /** Of the name server, for those that may go out. */
  readonly nameServer: string;
  /** Further addresses of this machine, besides those of the networks. */
  readonly outside: string;
}

/** Users of images, as numbers, where this machine may not know them. */
const USERS: Readonly<Record<string, string>> = { node: '1000', temporal: '1000' };

/**
 * Must run in a network and a mount namespace of its own (`unshare --net --mount`). Each service gets a network namespace
 * with its addresses, and a root folder of this machine's programs with what the image and the compose file put there.
 */
export function createStandIn(services: readonly Service[], options: StandInOptions): StandIn {
  const { directory } = options;
  // `ip netns` keeps its handles there.
  sh('mount -t tmpfs tmpfs /run && ip link set lo up');
  sh(`ip addr add ${options.outside}/32 dev lo`);
  const networks = [...new Set(services.flatMap((one) => one.networks.map(({ name }) => name)))];
  const prefixes = new Map(networks.map((name, nth) => [name, `10.231.${nth}`]));
  for (const { networks: own } of services)
    for (const { name, address } of own)
      if (address !== undefined) prefixes.set(name, address.split('.').slice(0, 3).join('.'));
  networks.forEach((name, nth) =>
    sh(
      `ip link add br${nth} type bridge && ip addr add ${prefixes.get(name)}.1/24 dev br${nth} && ip link set br${nth} up`,
    ),
  );
  const addressOf = (service: Service, network: string) =>
    service.networks.find(({ name }) => name === network)?.address ??
    `${prefixes.get(network)}.${100 + services.indexOf(service)}`;
  for (const [nth, service] of services.entries()) {
    sh(`ip netns add ${service.name} && ip -n ${service.name} link set lo up`);
    for (const [at, { name }] of service.networks.entries()) {
      const [outer, inner] = [`o${nth}x${at}`, `eth${at}`];
      sh(`ip link add ${outer} type veth peer name ${inner} netns ${service.name}
        ip link set ${outer} master br${networks.indexOf(name)} up
        ip -n ${service.name} addr add ${addressOf(service, name)}/24 dev ${inner}
        ip -n ${service.name} link set ${inner} up`);
      if (name === 'outbound') sh(`ip -n ${service.name} route add default via ${prefixes.get(name)}.1`);
    }
  }
  // Those of ours belong to the user of our image, as the Dockerfile says. That of Postgres is made before it starts.
  for (const { name } of services.flatMap(({ volumes }) => volumes))
    sh(`mkdir -p -m 700 ${directory}/volumes/${name} && chown ${USERS['node']} ${directory}/volumes/${name}`);
  /** Names of those that share a network, as an engine's name server would answer them. */
  const hosts = (service: Service) =>
    services
      .flatMap((other) => {
        const shared = service.networks.find(({ name }) => other.networks.some((one) => one.name === name));
        return shared ? [`${addressOf(other, shared.name)} ${other.name}`] : [];
      })
      .join('\n');

  function rootOf(service: Service, mounts: Service['mounts']): string {
    const root = join(directory, 'roots', service.name);
    const commands = [
      `mkdir -p ${root}/usr/local/etc ${root}/dev ${root}/proc ${root}/tmp ${root}/run ${root}/app ${root}/opt/temporal`,
      `for folder in bin sbin lib lib64; do ln -sfn usr/$folder ${root}/$folder; done`,
      `[ -d ${root}/etc ] || cp -a /etc ${root}/etc`,
      `mount --bind ${root} ${root}`,
      `for at in /usr/* /usr/local/*; do
        [ -d "$at" ] && [ "$at" != /usr/local ] && [ "$at" != /usr/local/etc ] && [ ! -L "$at" ] || continue
        mkdir -p "${root}$at" && mount --rbind "$at" "${root}$at"; done`,
      `mount --rbind /dev ${root}/dev && mount --rbind /proc ${root}/proc`,
      `mount --bind ${options.temporal} ${root}/opt/temporal`,
      ...(service.image.startsWith('partner-finance')
        ? [`mount --bind ${options.app} ${root}/app && mount -o remount,bind,ro ${root}/app`]
        : []),
      ...[...service.mounts, ...mounts].map(({ from, to }) => {
        const at = `${root}${to}`;
        return `if [ -d ${from} ]; then mkdir -p ${at}; else mkdir -p $(dirname ${at}) && touch ${at}; fi && mount --bind ${from} ${at}`;
      }),
      ...service.volumes.map(
        ({
          name,
          to,
          readOnly,
        }) => `mkdir -p ${root}${to} && mount --bind ${directory}/volumes/${name} ${root}${to}
        ${readOnly ? `mount -o remount,bind,ro ${root}${to}` : ''}`,
      ),
      ...service.tmpfs.map(
        (path) => `mkdir -p ${root}${path} && mount -t tmpfs -o mode=1777 tmpfs ${root}${path}`,
      ),
      ...(service.readOnly ? [`mount -o remount,bind,ro ${root}`] : []),
    ];
    mkdirSync(join(root, 'etc'), { recursive: true });
    sh(`rm -rf ${root}/etc && cp -a /etc ${root}/etc`);
    writeFileSync(join(root, 'etc/hosts'), `127.0.0.1 localhost\n${hosts(service)}\n`);
    const outward = service.networks.some(({ name }) => name === 'outbound');
    sh(`rm -f ${root}/etc/resolv.conf`);
    writeFileSync(join(root, 'etc/resolv.conf'), outward ? `nameserver ${options.nameServer}\n` : '');
    return `set -eu\n${commands.join('\n')}`;
  }

  const path = `/opt/temporal:${options.postgresBin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin`;
  return {
    start(service, { argv = service.argv, environment = {}, mounts = [], onOutput } = {}) {
      const root = join(directory, 'roots', service.name);
      const name = service.user ?? (service.image.startsWith('temporalio/') ? 'temporal' : 'postgres');
      const user = USERS[name] ?? execFileSync('id', ['-u', name]).toString().trim();
      const group = USERS[name] ?? execFileSync('id', ['-g', name]).toString().trim();
      const ours = service.image.startsWith('partner-finance');
      const script = `${rootOf(service, mounts)}
        exec chroot ${root} /bin/sh -c 'cd "$0" && exec "$@"' ${ours ? '/app' : '/'} \\
          setpriv --reuid ${user} --regid ${group} --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all -- "$@"`;
      const child = spawn(
        'ip',
        ['netns', 'exec', service.name, 'unshare', '--mount', 'sh', '-c', script, 'sh', ...argv],
        { env: { PATH: path, ...service.environment, ...environment }, stdio: ['ignore', 'pipe', 'pipe'] },
      );
      const log = createWriteStream(join(directory, `${service.name}.log`), { flags: 'a' });
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => log.write(chunk));
      child.stdout.on('data', (chunk: Buffer) => onOutput?.(chunk.toString()));
      const ended = new Promise<number | string>((resolve) =>
        child.once('close', (code, signal) => resolve(code ?? signal ?? 'gone')),
      );
      return { service, child, ended, startedAt: performance.now() };
    },
    addressesOf: (service) => service.networks.map(({ name }) => addressOf(service, name)),
    healthy({ service, child }) {
      const args = ['--target', String(child.pid), '--mount', '--net', '--root', '--wd', '--'];
      try {
        execFileSync('nsenter', [...args, ...(service.test ?? ['true'])], {
          env: { PATH: path, ...service.environment },
          timeout: 20_000,
          stdio: 'ignore',
        });
        return true;
      } catch {
        return false;
      }
    },
  };
}

function sh(script: string): void {
  execFileSync('sh', ['-euc', script], { stdio: ['ignore', 'ignore', 'inherit'] });
}
