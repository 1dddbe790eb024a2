import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import postgres from 'postgres';
import { parse, stringify } from 'yaml';
import { freeLowPorts } from '../dev/ports';
import { answersAt } from '../dev/temporal';
import { findTemporalServer, SERVER_VERSION } from '../dev/temporal-postgres/executables';
import { keepTemporalCertificates } from '../runtime/certificates/temporal-certificates';
import { readConfig } from '../runtime/config/config';
import { ensureNamespace } from '../runtime/temporal/namespace';
import { temporalTarget } from '../runtime/temporal/temporal-target';
import { until } from './until';
import type { OwnTemporal } from './own-temporal';
import { startOwnPostgres } from './own-postgres';
import { startProgram } from './project-process';
import { watchedDirectory } from './watchdog';

const root = join(__dirname, '..');
const PASSWORD = 'of-temporal';
/** It takes seconds; on a busy machine many. */
const READY_MS = 120_000;
/** As the compose file starts it; `--root` is a folder of ours. */
const ARGUMENTS = ['--config', 'deploy', '--env', 'server', '--allow-no-auth', 'start'];

/** A real Temporal server on Postgres with what stands in deploy/temporal; only ports and paths differ. Its namespaces are not made. */
export type ProductionTemporal = Awaited<ReturnType<typeof openProductionTemporal>>;

/** Runs the server of this release. @throws when it can neither be found nor built. The first time on a machine that takes minutes. */
export async function startProductionTemporal(): Promise<ProductionTemporal> {
  const temporal = await openProductionTemporal();
  temporal.start();
  return temporal;
}

/** How a server differs from deploy/temporal where its speed is measured. */
interface Measured {
  /** Fixed for the life of the database. */
  readonly shards: number;
  /** Sessions of the history database; that of visibility has half as many. */
  readonly connections: number;
  /** Of its Postgres. */
  readonly settings: Readonly<Record<string, string | number>>;
}

/**
 * Prepares it: certificates, and a Postgres with the schemas of its two databases. The server does not run yet.
 * @param measured its size; it speaks no TLS then
 */
export async function openProductionTemporal(measured?: Measured) {
  const { directory, remove } = await watchedDirectory('production-temporal');
  // Under the names that they have in Temporal's images.
  const onProgress = (text: string) => process.stderr.write(`Temporal ${SERVER_VERSION}: ${text}\n`);
  const found = await findTemporalServer({ onProgress });
  await symlink(found.server, join(directory, 'temporal-server'));
  await symlink(found.sqlTool, join(directory, 'temporal-sql-tool'));
  const certificates = join(directory, 'certificates');
  await makeCertificates(certificates);
  const store = await startOwnPostgres(measured?.settings);

  const yaml = await readFile(join(root, 'deploy/temporal/server.yaml'), 'utf8');
  const numbers = [...new Set([...yaml.matchAll(/\b[67][29]3\d\b/g)].map(([port]) => port))];
  const ports = await freeLowPorts(numbers.length);
  const portOf = (number: string) => String(ports[numbers.indexOf(number)]);
  const config = yaml
    .replaceAll(/\b[67][29]3\d\b/g, portOf)
    .replaceAll('/etc/temporal/tls', join(certificates, 'server'));
  const dynamic = await readFile(join(root, 'deploy/temporal/dynamic-config.yaml'), 'utf8');
  const files = measured ? withoutTls(config, dynamic, measured) : { server: config, dynamic };
  await mkdir(join(directory, 'deploy'));
  for (const [name, text] of Object.entries(files))
    await writeFile(join(directory, `deploy/${name}.yaml`), text, { mode: 0o600 });

  const { host, hostname, port } = new URL(store.url);
  async function setUp(): Promise<void> {
    await createDatabases(store.url);
    await makeSchema(directory, { SQL_HOST: hostname, SQL_PORT: port, TEMPORAL_DB_PASSWORD: PASSWORD });
  }
  await setUp();
  let programs: ReturnType<typeof startProgram>[] = [];
  const run = (services: readonly string[]) =>
    // The directory on the command line is how the watchdog finds it.
    startProgram([join(directory, 'temporal-server'), '--root', directory, ...ARGUMENTS, ...services], {
      cwd: directory,
      env: {
        PATH: process.env['PATH'],
        TEMPORAL_BIND: '127.0.0.1',
        TEMPORAL_DB_ADDRESS: host,
        TEMPORAL_DB_PASSWORD: PASSWORD,
        TEMPORAL_DYNAMIC_CONFIG: join(directory, 'deploy/dynamic.yaml'),
        // As docker-compose.yml has it: its live memory is small next to what it throws away.
        GOGC: '400',
      },
    });
  const kill = async () => void (await Promise.all(programs.map((program) => program.end('SIGKILL'))));
  const address = `127.0.0.1:${portOf('7233')}`;
  const environment = settingsOfClient(address, join(certificates, 'client'));
  return {
    store,
    /** `127.0.0.1:…`; its certificate is for the name `temporal`. */
    address,
    /** `host:port` where its frontend meets the other services. */
    membershipAddress: `127.0.0.1:${portOf('6933')}`,
    /** With the folders `server`, `client` and `console`. */
    certificates,
    /** Settings of a process of ours, as docker-compose.yml has them. */
    environment,
    /** Starts all of its services in one process. */
    start() {
      const program = run([]);
      programs = [program];
      return program;
    },
    /** Starts some of its services in a process of their own. @returns it */
    startPart(services: readonly string[]) {
      const program = run(services.flatMap((service) => ['--service', service]));
      programs.push(program);
      return program;
    },
    /** Waits until it answers. @throws with the end of its output when that takes two minutes, or it has ended. */
    async ready(): Promise<void> {
      const { connection } = temporalTarget(
        readConfig(measured ? { TEMPORAL_ADDRESS: address } : environment),
      );
      // Temporal makes this namespace when it starts.
      let answers = false;
      const answersOrEnded = async () => {
        answers = await answersAt(connection, 'temporal-system');
        return answers || !programs.every((program) => program.running());
      };
      await until(answersOrEnded, 'it answers', READY_MS).catch(() => undefined);
      if (answers) return;
      const output = programs.map((program) => program.output().slice(-3_000)).join('\n');
      throw new Error(`Temporal does not answer:\n${output}`);
    },
    kill,
    /** Deletes its databases, and sets up empty ones. Only while it does not run. */
    forget: setUp,
    async close() {
      await kill();
      await store.close();
      await remove();
    },
  };
}

/** The same files without TLS, and of another size. */
function withoutTls(config: string, dynamic: string, { shards, connections }: Measured) {
  const server = parse(config, { merge: true });
  const { history, visibility } = server.persistence.datastores;
  delete server.global.tls;
  server.persistence.numHistoryShards = shards;
  history.sql.maxConns = history.sql.maxIdleConns = connections;
  visibility.sql.maxConns = visibility.sql.maxIdleConns = Math.ceil(connections / 2);
  const { 'system.enableRingpopTLS': _, ...rules } = parse(dynamic);
  // A template reads a text in single quotes as it stands.
  const text = stringify(server, { singleQuote: true, aliasDuplicateObjects: false });
  return { server: `# enable-template\n${text}`, dynamic: stringify(rules) };
}

/** Certificates of Temporal and of its clients, each in its folder. */
export async function makeCertificates(folder: string): Promise<void> {
  for (const each of ['authority', 'server', 'client', 'console'])
    await mkdir(join(folder, each), { recursive: true });
  await keepTemporalCertificates(folder, new Date());
}

/** Sets up its databases by deploy/temporal/schema.sh. @param tools folder of temporal-sql-tool */
export async function makeSchema(tools: string, settings: Readonly<Record<string, string>>): Promise<void> {
  const env = { PATH: `${tools}:/usr/local/bin:/usr/bin:/bin`, ...settings };
  await promisify(execFile)('sh', [join(root, 'deploy/temporal/schema.sh')], { env });
}

/** @param folder of the client's certificate */
export const settingsOfClient = (address: string, folder: string) => ({
  TEMPORAL_ADDRESS: address,
  TEMPORAL_NAMESPACE: 'quotes',
  TEMPORAL_TLS_SERVER_NAME: 'temporal',
  TEMPORAL_TLS_SERVER_CA_CERT_PATH: join(folder, 'ca.pem'),
  TEMPORAL_TLS_CLIENT_CERT_PATH: join(folder, 'cert.pem'),
  TEMPORAL_TLS_CLIENT_KEY_PATH: join(folder, 'key.pem'),
});

/** As deploy/postgres/init.sh; those that are there are deleted first. */
async function createDatabases(url: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  const names = ['temporal', 'temporal_visibility'];
  try {
    for (const name of names) await sql.unsafe(`drop database if exists ${name} with (force)`);
    await sql.unsafe('drop role if exists temporal');
    await sql.unsafe(`create role temporal login password '${PASSWORD}'`);
    for (const name of names) await sql.unsafe(`create database ${name} owner temporal`);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** A server that may be killed and started again. */
export interface KillableTemporal extends Pick<
  OwnTemporal,
  'address' | 'namespace' | 'client' | 'start' | 'kill' | 'forget' | 'close'
> {
  /** Further settings of a worker that is to reach it. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Prepares production's server, on Postgres with the files of deploy/temporal. It is built with Go where it is missing. */
export async function killableProductionTemporal(): Promise<KillableTemporal> {
  const server = await openProductionTemporal();
  const { namespace, connection: how } = temporalTarget(readConfig(server.environment));
  const connection = Connection.lazy(how);
  return {
    address: server.address,
    namespace,
    environment: server.environment,
    client: new Client({ connection, namespace }),
    async start() {
      server.start();
      await server.ready();
      await ensureNamespace(connection, { namespace, keepDays: 1 });
    },
    kill: server.kill,
    forget: server.forget,
    async close() {
      await connection.close();
      await server.close();
    },
  };
}
