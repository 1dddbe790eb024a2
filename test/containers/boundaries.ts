import { deepStrictEqual, strictEqual } from 'node:assert';
import { spawn } from 'node:child_process';
import { MACHINE } from './partner';
import type { Scene } from './scene';

interface Inspected {
  readonly Name: string;
  readonly State: { readonly Running: boolean };
  readonly HostConfig: Record<string, unknown> & { readonly SecurityOpt: readonly string[] };
  readonly NetworkSettings: {
    readonly Networks: Record<string, { readonly IPAddress: string; readonly Gateway: string }>;
  };
}

const inspect = async ({ project }: Scene) =>
  JSON.parse(await project.run('docker inspect $(docker compose ps -aq)')) as Inspected[];

/** Of each container, what the engine holds it to; and of its processes, who they are. */
export async function guarded(scene: Scene): Promise<void> {
  const { project } = scene;
  for (const { Name: name, State, HostConfig: given } of await inspect(scene)) {
    const { ReadonlyRootfs: readOnly, CapDrop: dropped, SecurityOpt: security } = given;
    deepStrictEqual(
      { name, readOnly, dropped, security },
      { name, readOnly: true, dropped: ['ALL'], security: ['no-new-privileges:true'] },
    );
    for (const limit of ['Memory', 'NanoCpus', 'PidsLimit'])
      strictEqual(Number(given[limit]) > 0, true, `${name} has no ${limit}`);
    if (!State.Running) continue;
    const users = await project.run(`docker top ${name.slice(1)} -eo uid,pid,args | tail -n +2`);
    strictEqual(
      users.split('\n').some((line) => line.startsWith('0 ')),
      false,
      `root in ${name}: ${users}`,
    );
  }
}

/** A service of the machine itself. */
const OWN = 2222;
const PORTS = [
  80, 443, 2222, 3000, 5432, 6379, 6933, 6934, 6935, 6939, 7233, 7234, 7235, 7239, 8080, 8081, 8233, 8404,
  8443, 8444, 9090, 9100, 9115,
];

/** Tried from a container on one network, and from outside, as `address:port`: all ports of all containers, and the gateways behind which the machine is. */
const SCAN = `const net = require('node:net');
const reach = (to) => new Promise((resolve) => { const at = to.lastIndexOf(':');
  const socket = net.connect({ host: to.slice(0, at), port: Number(to.slice(at + 1)), timeout: 1500 });
  for (const [event, yes] of [['connect', true], ['error', false], ['timeout', false]]) socket.once(event, () => { resolve(yes); socket.destroy(); }); });
(async () => { const all = process.argv[1].split(','); const yes = await Promise.all(all.map(reach)); console.log(all.filter((_, n) => yes[n]).join(' ')); })();`;

/** By network: what a container that joins it reaches. */
const REACHED: Readonly<Record<string, string>> = {
  lenders: 'proxy:8444',
  edge: 'api-1:8080 api-1:8081 api-2:8080 api-2:8081 proxy:8404 proxy:8443',
  data: 'api-1:8080 api-1:8081 api-2:8080 api-2:8081 postgres:5432 redis:6379 worker-1:8081 worker-2:8081',
  'temporal-data': 'postgres:5432 temporal:6933 temporal:7233',
};

export async function network(scene: Scene): Promise<void> {
  const { project } = scene;
  const containers = (await inspect(scene)).filter(({ State }) => State.Running);
  const nameOf = new Map<string, string>();
  for (const { Name, NetworkSettings } of containers)
    for (const { IPAddress } of Object.values(NetworkSettings.Networks))
      nameOf.set(IPAddress, Name.replace(/^\/finance-(.+)-\d+$/, '$1'));
  const listener = spawn('nsenter', [
    '-t',
    process.env['ENGINE_PID'] ?? '',
    '-n',
    process.execPath,
    '-e',
    `require('node:net').createServer().listen(${OWN})`,
  ]);
  project.write('scan.js', SCAN);
  try {
    for (const [name, expected] of Object.entries(REACHED)) {
      const { IPAM } = (
        JSON.parse(await project.run(`docker network inspect finance_${name}`)) as [
          { IPAM: { Config: { Subnet: string; Gateway?: string }[] } },
        ]
      )[0];
      const gateways = IPAM.Config.map(({ Subnet, Gateway }) => Gateway ?? Subnet.replace(/0\/\d+$/, '1'));
      const targets = [...nameOf.keys(), ...gateways, MACHINE.ipv4].flatMap((address) =>
        PORTS.map((port) => `${address}:${port}`),
      );
      const out = await project.run(
        `docker run --rm --network finance_${name} node:24-bookworm-slim node -e "$(cat scan.js)" ${targets.join(',')}`,
      );
      const reached = out
        .split(' ')
        .filter(Boolean)
        .map((one) => `${nameOf.get(one.split(':')[0] ?? '') ?? one.split(':')[0]}:${one.split(':')[1]}`);
      strictEqual([...new Set(reached)].toSorted().join(' '), expected, `from ${name}`);
    }
    const outside = PORTS.map((port) => `${MACHINE.ipv4}:${port}`);
    strictEqual(
      await project.run(`'${process.execPath}' -e "$(cat scan.js)" ${outside.join(',')}`),
      [80, 443, OWN].map((port) => `${MACHINE.ipv4}:${port}`).join(' '),
      'from outside',
    );
  } finally {
    listener.kill();
  }
  const page = await project.run('machine curl -s -o /dev/null -w "%{http_code}" http://127.0.0.1:8233/');
  strictEqual(page, '200', "Temporal's page");
}
