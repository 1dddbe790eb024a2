import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findTemporalServer } from '../../dev/temporal-postgres/executables';
import { createAuthority, issueCertificate } from '../../runtime/certificates/issue';
import { answersOk } from '../../testbed/http-call';
import { makeCertificates, makeSchema, settingsOfClient } from '../../testbed/production-temporal';
import { newSecrets, own, RELEASE, writeMachineFiles } from './files';
import { openMachine, untilTrue, type Machine } from './machine';
import {
  ADDRESSES,
  GATEWAY,
  MACHINES,
  openNetwork,
  PARTNER_ADDRESS,
  TWINS,
  type MachineName,
} from './network';
import { viewPatroni } from './patroni';
import { readEnvironment, type UnitName } from './units';

const root = join(__dirname, '../..');

const TWIN: readonly UnitName[] = ['etcd', 'patroni', 'proxy', 'temporal', 'api', 'worker'];
/** What runs where: two machines alike, and a small third one, so that two of three etcd are left whichever is lost. */
const PLAN: Readonly<Record<MachineName, readonly UnitName[]>> = { a: TWIN, b: TWIN, c: ['etcd', 'redis'] };

export interface BringUpOptions<Prepared> {
  readonly directory: string;
  readonly say: (text: string) => void;
  /** Lines that a run adds to env files, by their path under /srv/quotes/etc. */
  readonly extra: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Called when the schema is there, before a process of the service starts. `databaseUrl`: of its owner, from this program. */
  readonly onSchema: (
    files: Awaited<ReturnType<typeof prepare>> & { readonly databaseUrl: string },
  ) => Promise<Prepared>;
}

export type Cluster = Awaited<ReturnType<typeof bringUp>>;

/** Brings up the whole cluster in the order of docs/operations/cluster.md. Must run in namespaces of its own (inside.ts). */
export async function bringUp<Prepared>(options: BringUpOptions<Prepared>) {
  const { say } = options;
  openNetwork();
  const files = await prepare(options);
  const { machines, secrets, authority, authorityFile, certificate } = files;
  const patroni = viewPatroni(authority, certificate);
  const { a, b, c } = machines;

  say('three etcd; Postgres, a leader and its synchronous standby');
  for (const name of MACHINES) machines[name].start('etcd');
  for (const machine of [a, b]) machine.start('patroni');
  await untilTrue('Patroni has a leader and a synchronous standby', 120_000, () => patroni.isWhole());
  const leader = machines[(await patroni.leader()) ?? 'a'];
  // The logins, on the leader.
  const script = readFileSync(join(root, 'deploy/postgres/init.sh'), 'utf8');
  const environment = { ...secrets, POSTGRES_USER: 'postgres', PGHOST: '/srv/quotes/postgres' };
  await leader.run('postgres', ['bash', '-s'], environment, script);

  say('the schema, of the service and of Temporal');
  await job(a, 'migrate', 'migrate.env');
  await makeSchema(files.tools, {
    SQL_HOST: ADDRESSES[leader.name],
    SQL_PORT: '5432',
    SQL_TLS: 'true',
    SQL_TLS_CA_FILE: authorityFile,
    TEMPORAL_DB_PASSWORD: secrets.TEMPORAL_DB_PASSWORD,
  });
  const hosts = `${ADDRESSES.a},${ADDRESSES.b}`;
  const parameters = `target_session_attrs=read-write&sslmode=verify-full&sslrootcert=${authorityFile}`;
  const databaseUrl = `postgres://quotes:${secrets.QUOTES_DB_PASSWORD}@${hosts}/quotes?${parameters}`;
  const prepared = await options.onSchema({ ...files, databaseUrl });

  say('Redis, two Temporal, two HAProxy');
  c.start('redis');
  for (const machine of [a, b]) for (const unit of ['temporal', 'proxy'] as const) machine.start(unit);
  await job(a, 'prepare-temporal', 'ops.env');

  say('two API processes, two workers');
  for (const machine of [a, b]) for (const unit of ['api', 'worker'] as const) machine.start(unit);
  await untilReady(180_000);
  await ops(a, ['deployments', 'set-current', RELEASE]);
  return {
    ...files,
    patroni,
    prepared,
    /** Settings of a client of Temporal, from this program. */
    temporalEnvironment: settingsOfClient(`${ADDRESSES.a}:7233`, files.temporalClient),
  };
}

/** Readiness of API process and worker, and that the proxy sends calls to it. */
export async function isReady(name: MachineName): Promise<boolean> {
  const answers = [':8081/ready', ':8082/ready', ':8404/health'].map((path) =>
    answersOk(`http://${ADDRESSES[name]}${path}`, 2_000),
  );
  return !(await Promise.all(answers)).includes(false);
}

/** Waits until both machines serve. */
export async function untilReady(timeoutMs: number): Promise<void> {
  for (const name of TWINS)
    await untilTrue(`API process, worker and proxy of ${name} are ready`, timeoutMs, () => isReady(name));
}

/** Runs a job of ours to its end, with the settings of this file. @returns what it has printed */
const job = (machine: Machine, name: string, file: string, args: readonly string[] = []) =>
  machine.run('quotes', [process.execPath, `/srv/quotes/app/dist/bin/${name}.js`, ...args], {
    ...readEnvironment(join(machine.srv, 'etc/quotes', file)),
    OPS_ACTOR: 'cluster',
  });

export const ops = (machine: Machine, args: readonly string[]) => job(machine, 'ops', 'ops.env', args);

/** Builds the service, makes certificates and the machines with their files. Nothing runs yet. */
async function prepare({ directory, say, extra }: Omit<BringUpOptions<unknown>, 'onSchema'>) {
  const { server, sqlTool } = await findTemporalServer({ onProgress: say });
  const tools = join(directory, 'tools');
  mkdirSync(tools);
  symlinkSync(sqlTool, join(tools, 'temporal-sql-tool'));
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
  const issue = (...addresses: string[]) => {
    const names = addresses.map((value) => ({ type: 'ip' as const, value }));
    return issueCertificate(authority, names, validity, ['serverAuth', 'clientAuth']);
  };
  const temporalFolder = join(directory, 'temporal-certificates');
  await makeCertificates(temporalFolder);
  const authorityFile = join(directory, 'ca.pem');
  writeFileSync(authorityFile, authority.cert);
  writeFileSync(join(directory, 'resolv.conf'), `nameserver ${PARTNER_ADDRESS}\n`);
  // The cache is in a home folder, which the accounts of the machines may not enter.
  cpSync(server, join(directory, 'temporal-server'));
  const backups = join(directory, 'backups');
  for (const folder of ['', 'archive', 'base', 'dump', 'metrics']) {
    mkdirSync(join(backups, folder));
    own(join(backups, folder), 'postgres');
  }
  const mounts = {
    'app/deploy': join(root, 'deploy'),
    'app/dist': join(app, 'dist'),
    backups,
    'app/node_modules': join(root, 'node_modules'),
    'bin/temporal-server': join(directory, 'temporal-server'),
  };

  const secrets = newSecrets();
  const proxy = await issue(ADDRESSES.a, ADDRESSES.b);
  const machines = {} as Record<MachineName, Machine>;
  for (const name of MACHINES) {
    const machine = await issue(ADDRESSES[name], '127.0.0.1');
    const certificates = { authority: authority.cert, machine, proxy, temporalFolder };
    const srv = join(directory, name, 'quotes');
    writeMachineFiles({ name, srv, secrets, certificates, postgresBin: postgresBin(), extra });
    machines[name] = await openMachine({ name, directory, units: PLAN[name], mounts });
  }
  return {
    machines: machines as Readonly<Record<MachineName, Machine>>,
    secrets,
    authority: authority.cert,
    authorityFile,
    /** Of this program, as a client. */
    certificate: await issue(GATEWAY),
    /** Folder of Temporal's client certificate. */
    temporalClient: join(temporalFolder, 'client'),
    tools,
    backups,
    postgresBin: postgresBin(),
  };
}

/** Of the newest Postgres that Debian has installed. */
function postgresBin(): string {
  const found = execFileSync('sh', ['-c', 'ls -d /usr/lib/postgresql/*/bin/initdb | sort -V | tail -1']);
  return dirname(found.toString().trim());
}
