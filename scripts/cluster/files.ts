import { randomBytes } from 'node:crypto';
import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
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

/** The first. */
export const RELEASE = 'release-1';

/** The folders of /srv/quotes/etc: who reads each, and its files, by their paths from deploy/cluster. */
const FOLDERS = {
  etcd: { owner: 'etcd', files: ['etcd.env'] },
  patroni: { owner: 'postgres', files: ['patroni.yml'] },
  redis: { owner: 'redis', files: ['redis.conf'] },
  temporal: {
    owner: 'quotes',
    files: ['temporal.env', 'temporal.yaml', '../temporal/dynamic-config.yaml'],
  },
  quotes: { owner: 'quotes', files: ['migrate.env', 'api.env', 'worker.env', 'ops.env'] },
  proxy: { owner: 'haproxy', files: ['proxy.env', '../proxy/haproxy.cfg', 'haproxy-temporal.cfg'] },
} as const;
type Folder = keyof typeof FOLDERS;

interface MachineFiles {
  readonly name: MachineName;
  /** Its /srv/quotes. */
  readonly srv: string;
  readonly secrets: Secrets;
  readonly certificates: {
    readonly authority: string;
    /** Of a machine, for its address, as server and as client. */
    readonly machine: IssuedCertificate;
    /** Of the proxies, for both addresses. */
    readonly proxy: IssuedCertificate;
    /** Of Temporal and its clients (bin/temporal-certificates.ts): folders `server` and `client`. */
    readonly temporalFolder: string;
  };
  /** Folder of the programs of this machine's Postgres. */
  readonly postgresBin: string;
  /** Lines that a run adds to env files, by their path. */
  readonly extra: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** Writes what a machine has in /srv/quotes: the files of deploy/cluster with their blanks filled in, certificates, empty data folders. */
export function writeMachineFiles(wanted: MachineFiles): void {
  const { name, srv, secrets, certificates, postgresBin, extra } = wanted;
  const blanks: Record<string, string> = {
    NAME: name,
    PUBLIC_NAME: 'quotes.example',
    ADDRESS: ADDRESSES[name],
    ...secrets,
  };
  const fill = (source: string) =>
    readFileSync(join(root, 'deploy/cluster', source), 'utf8')
      .replaceAll(/<([A-Z_]+)>/g, (_, blank: string) => blanks[blank] ?? missing(source, blank))
      .replace('/usr/lib/postgresql/15/bin', postgresBin);
  const folder = (path: string, owner: string) => {
    mkdirSync(join(srv, path), { recursive: true, mode: 0o755 });
    own(join(srv, path), owner);
  };
  const give = (to: Folder, files: Readonly<Record<string, string>>) => {
    for (const [path, text] of Object.entries(files)) {
      const file = join('etc', to, path);
      folder(dirname(file), FOLDERS[to].owner);
      writeFileSync(join(srv, file), text, { mode: 0o600 });
      own(join(srv, file), FOLDERS[to].owner);
    }
  };
  for (const [to, { files }] of Object.entries(FOLDERS))
    for (const source of files) {
      const lines = Object.entries(extra[`${to}/${basename(source)}`] ?? {}).map(
        (one) => `${one.join('=')}\n`,
      );
      give(to as Folder, { [basename(source)]: fill(source) + lines.join('') });
    }
  const { authority, machine, proxy, temporalFolder } = certificates;
  const of = (path: string) => readFileSync(join(temporalFolder, path), 'utf8');
  const ours = { 'ca.pem': authority, 'cert.pem': machine.cert, 'key.pem': machine.key };
  give('etcd', ours);
  give('patroni', ours);
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
  for (const data of ['etcd', 'postgres']) folder(data, data);
  for (const mountPoint of ['app/dist', 'app/node_modules', 'app/deploy', 'backups', 'bin'])
    folder(mountPoint, 'root');
  writeFileSync(join(srv, 'bin/temporal-server'), '');
  writeFileSync(join(srv, 'app/release.env'), `WORKER_BUILD_ID=${RELEASE}\n`);
  writeFileSync(join(srv, 'app/package.json'), readFileSync(join(root, 'package.json')));
}

export function own(path: string, name: string): void {
  const { user, group } = accountOf(name);
  chownSync(path, user, group);
}

function missing(file: string, blank: string): never {
  throw new Error(`${file}: nothing is known of <${blank}>`);
}
