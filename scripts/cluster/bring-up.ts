import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { untilTrue, type Machine } from './machine';
import { ADDRESSES, MACHINES, openNetwork, type MachineName } from './network';
import { viewPatroni, type PatroniView } from './patroni';
import { prepare, type ClusterStores, type Prepared, type PrepareOptions } from './prepare';
import { readEnvironment } from './units';

const root = join(__dirname, '../..');

export interface Cluster extends ClusterStores {
  readonly patroni: PatroniView;
  /** Settings of a client of Temporal, from this program. */
  readonly temporalEnvironment: Readonly<Record<string, string>>;
}

/** Brings up the whole cluster in the order of docs/operations/cluster.md. Must run in namespaces of its own (inside.ts). */
export async function bringUp(options: PrepareOptions): Promise<Cluster> {
  const { say, directory } = options;
  openNetwork();
  const prepared = await prepare(options);
  const { machines, secrets, authority, authorityFile, certificate, temporalClient } = prepared;
  const patroni = viewPatroni(authority, certificate);
  const { a, b, c } = machines;

  say('three etcd; Postgres, a leader and its synchronous standby');
  for (const name of MACHINES) machines[name].start('etcd');
  for (const machine of [a, b]) machine.start('patroni');
  await untilTrue('Patroni has a leader and a synchronous standby', 120_000, () => patroni.isWhole());
  const leader = machines[(await patroni.leader()) ?? 'a'];
  await createLogins(leader, secrets);

  say('the schema, of the service and of Temporal');
  await job(a, 'migrate');
  await temporalSchema(prepared, leader.name, directory);
  const hosts = `${ADDRESSES.a},${ADDRESSES.b}`;
  const parameters = `target_session_attrs=read-write&sslmode=verify-full&sslrootcert=${authorityFile}`;
  const databaseUrl = `postgres://quotes:${secrets.QUOTES_DB_PASSWORD}@${hosts}/quotes?${parameters}`;
  await options.onSchema?.({ ...prepared, databaseUrl });

  say('Redis, two Temporal, two HAProxy');
  c.start('redis');
  for (const machine of [a, b]) for (const unit of ['temporal', 'proxy'] as const) machine.start(unit);
  await job(a, 'prepare-temporal');

  say('two API processes, two workers');
  for (const machine of [a, b]) for (const unit of ['api', 'worker'] as const) machine.start(unit);
  for (const { name } of [a, b]) await untilReady(name);
  return {
    ...prepared,
    patroni,
    databaseUrl,
    temporalEnvironment: {
      TEMPORAL_ADDRESS: `${ADDRESSES.a}:7233`,
      TEMPORAL_NAMESPACE: 'quotes',
      TEMPORAL_TLS_SERVER_NAME: 'temporal',
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: join(temporalClient, 'ca.pem'),
      TEMPORAL_TLS_CLIENT_CERT_PATH: join(temporalClient, 'cert.pem'),
      TEMPORAL_TLS_CLIENT_KEY_PATH: join(temporalClient, 'key.pem'),
    },
  };
}

/** Readiness of API process and worker, and that the proxy sends calls to it. */
export async function isReady(name: MachineName): Promise<boolean> {
  const paths = [':8081/ready', ':8082/ready', ':8404/health'];
  const answers = paths.map((path) =>
    fetch(`http://${ADDRESSES[name]}${path}`, { signal: AbortSignal.timeout(2_000) }).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return !(await Promise.all(answers)).includes(false);
}

export const untilReady = (name: MachineName) =>
  untilTrue(`API process, worker and proxy of machine ${name} are ready`, 180_000, () => isReady(name));

/** As deploy/postgres/init.sh says, on the leader. */
async function createLogins(leader: Machine, secrets: Prepared['secrets']): Promise<void> {
  const script = readFileSync(join(root, 'deploy/postgres/init.sh'), 'utf8');
  const environment = { ...secrets, POSTGRES_USER: 'postgres', PGHOST: '/srv/quotes/postgres' };
  await leader.run('postgres', ['bash', '-s'], environment, script);
}

/** A job of ours, with the environment that the files give it. */
async function job(machine: Machine, name: 'migrate' | 'prepare-temporal'): Promise<void> {
  const file = name === 'migrate' ? 'migrate.env' : 'worker.env';
  const environment = readEnvironment(join(machine.srv, 'etc/quotes', file));
  await machine.run('quotes', [process.execPath, `/srv/quotes/app/dist/bin/${name}.js`], environment);
}

async function temporalSchema(prepared: Prepared, leader: MachineName, directory: string): Promise<void> {
  const tools = join(directory, 'tools');
  mkdirSync(tools);
  symlinkSync(prepared.sqlTool, join(tools, 'temporal-sql-tool'));
  await promisify(execFile)('sh', [join(root, 'deploy/temporal/schema.sh')], {
    env: {
      PATH: `${tools}:/usr/local/bin:/usr/bin:/bin`,
      SQL_HOST: ADDRESSES[leader],
      SQL_PORT: '5432',
      SQL_TLS: 'true',
      SQL_TLS_CA_FILE: prepared.authorityFile,
      TEMPORAL_DB_PASSWORD: prepared.secrets.TEMPORAL_DB_PASSWORD,
    },
  });
}
