import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findTemporalServer } from '../../dev/temporal-postgres/executables';
import { createAuthority, issueCertificate, type IssuedCertificate } from '../../runtime/certificates/issue';
import { keepTemporalCertificates } from '../../runtime/certificates/temporal-certificates';
import { openMachine, type Machine } from './machine';
import { newSecrets, type Secrets, writeMachineFiles } from './files';
import { ADDRESSES, GATEWAY, MACHINES, PARTNER_ADDRESS, type MachineName } from './network';
import type { UnitName } from './units';

const root = join(__dirname, '../..');

/** What runs where: two machines alike, and a small third one, so that two of three etcd are left whichever is lost. */
export const PLAN: Readonly<Record<MachineName, readonly UnitName[]>> = {
  a: ['etcd', 'patroni', 'proxy', 'temporal', 'api', 'worker'],
  b: ['etcd', 'patroni', 'proxy', 'temporal', 'api', 'worker'],
  c: ['etcd', 'redis'],
};

export interface Prepared {
  readonly machines: Readonly<Record<MachineName, Machine>>;
  readonly secrets: Secrets;
  readonly authority: string;
  readonly authorityFile: string;
  /** Of this program, as a client. */
  readonly certificate: IssuedCertificate;
  /** Folder of Temporal's client certificate. */
  readonly temporalClient: string;
  readonly sqlTool: string;
}

export interface PrepareOptions {
  readonly directory: string;
  readonly say: (text: string) => void;
  /** Lines that a run adds to env files, by their path under /srv/quotes/etc. */
  readonly extra: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Called when the schema is there, before a process of the service starts. */
  readonly onSchema?: (cluster: ClusterStores) => Promise<void>;
}

/** What is there before the service's processes are. */
export interface ClusterStores extends Prepared {
  /** Of the schema's owner, from this program. */
  readonly databaseUrl: string;
}

/** Builds the service, makes certificates and the machines with their files. Nothing runs yet. */
export async function prepare({ directory, say, extra }: PrepareOptions): Promise<Prepared> {
  const { server, sqlTool } = await findTemporalServer({
    onProgress: say,
  });
  say('building the service');
  const app = join(directory, 'app');
  mkdirSync(app);
  symlinkSync(join(root, 'node_modules'), join(app, 'node_modules'));
  execFileSync(process.execPath, ['--import', 'tsx', 'scripts/build.ts', join(app, 'dist')], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const day = 86_400_000;
  const validity = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + 7 * day) };
  const authority = await createAuthority('Cluster', validity);
  const issue = (...addresses: string[]) =>
    issueCertificate(
      authority,
      addresses.map((value) => ({ type: 'ip' as const, value })),
      validity,
      ['serverAuth', 'clientAuth'],
    );
  const temporalFolder = join(directory, 'temporal-certificates');
  for (const folder of ['authority', 'server', 'client', 'console'])
    mkdirSync(join(temporalFolder, folder), { recursive: true });
  await keepTemporalCertificates(temporalFolder, new Date());
  const authorityFile = join(directory, 'ca.pem');
  writeFileSync(authorityFile, authority.cert);
  writeFileSync(join(directory, 'resolv.conf'), `nameserver ${PARTNER_ADDRESS}\n`);
  // The cache is in a home folder, which the accounts of the machines may not enter.
  cpSync(server, join(directory, 'temporal-server'));

  const secrets = newSecrets();
  const proxy = await issue(ADDRESSES.a, ADDRESSES.b);
  const open = async (name: MachineName): Promise<Machine> => {
    writeMachineFiles({
      name,
      srv: join(directory, name, 'quotes'),
      secrets,
      certificates: {
        authority: authority.cert,
        machine: await issue(ADDRESSES[name], '127.0.0.1'),
        proxy,
        temporalFolder,
      },
      postgresBin: postgresBin(),
      extra,
    });
    const mounts = {
      'app/dist': join(app, 'dist'),
      'app/node_modules': join(root, 'node_modules'),
      'bin/temporal-server': join(directory, 'temporal-server'),
    };
    return openMachine({ name, directory, units: PLAN[name], mounts });
  };
  const machines = Object.fromEntries(
    await Promise.all(MACHINES.map(async (name) => [name, await open(name)] as const)),
  ) as Record<MachineName, Machine>;
  return {
    machines,
    secrets,
    authority: authority.cert,
    authorityFile,
    certificate: await issue(GATEWAY),
    temporalClient: join(temporalFolder, 'client'),
    sqlTool,
  };
}

/** Of the newest Postgres that Debian has installed. */
function postgresBin(): string {
  const found = execFileSync('sh', ['-c', 'ls -d /usr/lib/postgresql/*/bin/initdb | sort -V | tail -1']);
  return dirname(found.toString().trim());
}
