import { randomBytes } from 'node:crypto';
import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { IssuedCertificate } from '../../runtime/certificates/issue';
import { ADDRESSES, type MachineName } from './network';
import { accountOf } from './units';

const NAMES = [
  'POSTGRES_PASSWORD',
  'REPLICATION_PASSWORD',
  'QUOTES_DB_PASSWORD',
  'QUOTES_API_DB_PASSWORD',
  'QUOTES_WORKER_DB_PASSWORD',
  'QUOTES_OPS_DB_PASSWORD',
  'TEMPORAL_DB_PASSWORD',
  'REDIS_PASSWORD',
] as const;

export type Secrets = Readonly<Record<(typeof NAMES)[number] | 'WEBHOOK_KEYS', string>>;

/** What stands in angle brackets in the files of deploy/cluster. */
export function newSecrets(): Secrets {
  const passwords = Object.fromEntries(NAMES.map((name) => [name, randomBytes(24).toString('hex')]));
  return { ...passwords, WEBHOOK_KEYS: `k1:${randomBytes(32).toString('base64')}` } as Secrets;
}

const root = join(__dirname, '../..');

/** Files of the project by their path under /srv/quotes/etc. */
const FILES = {
  'etcd/etcd.env': 'deploy/cluster/etcd.env',
  'patroni/patroni.yml': 'deploy/cluster/patroni.yml',
  'redis/redis.conf': 'deploy/cluster/redis.conf',
  'temporal/temporal.env': 'deploy/cluster/temporal.env',
  'temporal/temporal.yaml': 'deploy/cluster/temporal.yaml',
  'temporal/dynamic-config.yaml': 'deploy/temporal/dynamic-config.yaml',
  'quotes/migrate.env': 'deploy/cluster/migrate.env',
  'quotes/api.env': 'deploy/cluster/api.env',
  'quotes/worker.env': 'deploy/cluster/worker.env',
  'quotes/ops.env': 'deploy/cluster/ops.env',
  'proxy/proxy.env': 'deploy/cluster/proxy.env',
  'proxy/haproxy.cfg': 'deploy/proxy/haproxy.cfg',
  'proxy/haproxy-temporal.cfg': 'deploy/cluster/haproxy-temporal.cfg',
} as const;

/** Who reads each folder of /srv/quotes/etc. */
const OWNERS = {
  etcd: 'etcd',
  patroni: 'postgres',
  redis: 'redis',
  temporal: 'quotes',
  quotes: 'quotes',
  proxy: 'haproxy',
} as const;
type Folder = keyof typeof OWNERS;

interface Certificates {
  readonly authority: string;
  /** Of a machine, for its address, as server and as client. */
  readonly machine: IssuedCertificate;
  /** Of the proxies, for both addresses. */
  readonly proxy: IssuedCertificate;
  /** Of Temporal and its clients (bin/temporal-certificates.ts): folders `server` and `client`. */
  readonly temporalFolder: string;
}

interface MachineFiles {
  readonly name: MachineName;
  /** Its /srv/quotes. */
  readonly srv: string;
  readonly secrets: Secrets;
  readonly certificates: Certificates;
  /** Folder of the programs of this machine's Postgres. */
  readonly postgresBin: string;
  /** Lines that a run adds to env files, by their path. */
  readonly extra: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** Writes what a machine has in /srv/quotes: the files of deploy/cluster with their blanks filled in, certificates, empty data folders. */
export function writeMachineFiles({
  name,
  srv,
  secrets,
  certificates,
  postgresBin,
  extra,
}: MachineFiles): void {
  const blanks: Record<string, string> = { NAME: name, ADDRESS: ADDRESSES[name], ...secrets };
  const write = (path: string, text: string, owner: string) => {
    const file = join(srv, path);
    folder(dirname(path), owner);
    writeFileSync(file, text, { mode: 0o600 });
    own(file, owner);
  };
  const folder = (path: string, owner: string) => {
    mkdirSync(join(srv, path), { recursive: true, mode: 0o755 });
    own(join(srv, path), owner);
  };
  for (const [path, source] of Object.entries(FILES)) {
    const text = readFileSync(join(root, source), 'utf8')
      .replaceAll(/<([A-Z_]+)>/g, (_, blank: string) => blanks[blank] ?? missing(source, blank))
      .replace('/usr/lib/postgresql/15/bin', postgresBin);
    const lines = Object.entries(extra[path] ?? {}).map((pair) => `${pair.join('=')}\n`);
    write(`etc/${path}`, text + lines.join(''), OWNERS[path.split('/')[0] as Folder]);
  }
  const { authority, machine, proxy, temporalFolder } = certificates;
  const of = (path: string) => readFileSync(join(temporalFolder, path), 'utf8');
  const give = (to: Folder, files: Record<string, string>) => {
    for (const [path, text] of Object.entries(files)) write(`etc/${to}/${path}`, text, OWNERS[to]);
  };
  const own3 = { 'ca.pem': authority, 'cert.pem': machine.cert, 'key.pem': machine.key };
  give('etcd', own3);
  give('patroni', own3);
  give('temporal', {
    'ca.pem': of('server/ca.pem'),
    'cert.pem': of('server/cert.pem'),
    'key.pem': of('server/key.pem'),
    'database-ca.pem': authority,
  });
  give('quotes', {
    'database-ca.pem': authority,
    'temporal/ca.pem': of('client/ca.pem'),
    'temporal/cert.pem': of('client/cert.pem'),
    'temporal/key.pem': of('client/key.pem'),
  });
  give('proxy', {
    'tls.pem': proxy.cert + proxy.key,
    'temporal/ca.pem': of('client/ca.pem'),
    'temporal/client.pem': of('client/cert.pem') + of('client/key.pem'),
  });
  folder('etcd', 'etcd');
  folder('postgres', 'postgres');
  // Mount points.
  folder('app/dist', 'root');
  folder('app/node_modules', 'root');
  folder('bin', 'root');
  writeFileSync(join(srv, 'bin/temporal-server'), '');
  writeFileSync(join(srv, 'app/package.json'), readFileSync(join(root, 'package.json')));
}

function own(path: string, name: string): void {
  const { user, group } = accountOf(name);
  chownSync(path, user, group);
}

function missing(file: string, blank: string): never {
  throw new Error(`${file}: nothing is known of <${blank}>`);
}
