import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { runProgram } from '../temporal/tools';

export const DATABASES = { history: 'temporal', visibility: 'temporal_visibility' } as const;

/** gRPC and membership of each service. */
export const SERVICES = ['frontend', 'history', 'matching', 'worker'] as const;

/** What a size of machine decides. */
export interface TemporalSize {
  /** Fixed for the life of the database. */
  readonly shards: number;
  /** Sessions of the history database; that of visibility has half as many. */
  readonly connections: number;
}

interface ServerConfig extends TemporalSize {
  readonly postgresUrl: string;
  /** Two for each of {@link SERVICES}; the first is where clients go. */
  readonly ports: readonly number[];
}

const DEPLOYED = join(__dirname, '../../deploy/temporal/dynamic-config.yaml');
/** Between hosts, with the certificates of a deployment. */
const BETWEEN_HOSTS = /^system\.enable\w+:\n  - value: true\n/gm;

/** Writes the server's configuration into a folder. @returns the arguments that make the server read it. */
export async function writeServerConfig(folder: string, config: ServerConfig): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const dynamicFile = join(folder, 'dynamic.yaml');
  await writeFile(dynamicFile, (await readFile(DEPLOYED, 'utf8')).replaceAll(BETWEEN_HOSTS, ''));
  // JSON is YAML.
  const text = JSON.stringify(serverConfig(config, dynamicFile), null, 2);
  await writeFile(join(folder, 'server.yaml'), text, { mode: 0o600 });
  return ['--root', folder, '--config', '.', '--env', 'server', '--allow-no-auth', 'start'];
}

function serverConfig({ postgresUrl, ports, shards, connections }: ServerConfig, dynamicFile: string) {
  const address = `127.0.0.1:${ports[0]}`;
  return {
    log: { stdout: true, level: 'error', format: 'json' },
    persistence: {
      defaultStore: 'history',
      visibilityStore: 'visibility',
      numHistoryShards: shards,
      datastores: {
        history: { sql: datastore(postgresUrl, DATABASES.history, connections) },
        visibility: { sql: datastore(postgresUrl, DATABASES.visibility, Math.ceil(connections / 2)) },
      },
    },
    global: { membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' } },
    services: Object.fromEntries(
      SERVICES.map((name, at) => [
        name,
        { rpc: { grpcPort: ports[2 * at], membershipPort: ports[2 * at + 1], bindOnLocalHost: true } },
      ]),
    ),
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: { enabled: true, initialFailoverVersion: 1, rpcName: 'frontend', rpcAddress: address },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    publicClient: { hostPort: address },
    dynamicConfigClient: { filepath: dynamicFile, pollInterval: '1m' },
  };
}

/** The plugin matters: with `postgres12` (lib/pq) Postgres works twice as hard. */
function datastore(postgresUrl: string, databaseName: string, connections: number) {
  const { host, username, password } = new URL(postgresUrl);
  return {
    pluginName: 'postgres12_pgx',
    databaseName,
    connectAddr: host,
    connectProtocol: 'tcp',
    user: username,
    password: decodeURIComponent(password),
    maxConns: connections,
    maxIdleConns: connections,
    maxConnLifetime: '1h',
  };
}

/**
 * What we look for workflows by: newest first, by id, by status, and by our five search attributes, which take the first
 * keyword columns. The other 45 indexes cost a third of Temporal's time in Postgres and serve no query of ours. The columns stay:
 * Temporal writes them.
 */
const KEPT_INDEXES = [
  'executions_visibility_pkey',
  'default_idx',
  'by_workflow_id',
  'by_status',
  'by_keyword_01',
  'by_keyword_02',
  'by_keyword_03',
  'by_keyword_04',
  'by_keyword_05',
];

interface SchemaOptions {
  /** Superuser, any database of the server. */
  readonly postgresUrl: string;
  readonly sqlTool: string;
  readonly onProgress: (message: string) => void;
}

/** Brings both databases to the schema of the server's version; what is there already stays. */
export async function ensureSchema({ postgresUrl, sqlTool, onProgress }: SchemaOptions): Promise<void> {
  const { hostname, port, username, password } = new URL(postgresUrl);
  const env = {
    SQL_PLUGIN: 'postgres12_pgx',
    SQL_HOST: hostname,
    SQL_PORT: port,
    SQL_USER: username,
    SQL_PASSWORD: decodeURIComponent(password),
  };
  const sql = postgres(postgresUrl, { max: 1, onnotice: () => undefined });
  try {
    for (const [name, folder] of [
      [DATABASES.history, 'temporal'],
      [DATABASES.visibility, 'visibility'],
    ] as const) {
      const tool = async (...args: string[]) =>
        runProgram(sqlTool, ['--db', name, ...args], { env, timeoutMs: 120_000 });
      const [there] = await sql`select 1 from pg_database where datname = ${name}`;
      if (!there) {
        onProgress(`creating the database ${name}`);
        await tool('create-database');
        await tool('setup-schema', '-v', '0.0');
      }
      await tool('update-schema', '--schema-name', `postgresql/v12/${folder}`);
    }
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Drops the indexes on workflows' attributes that nothing of ours asks for. */
export async function dropUnusedIndexes(postgresUrl: string): Promise<void> {
  const url = new URL(postgresUrl);
  url.pathname = `/${DATABASES.visibility}`;
  const sql = postgres(url.href, { max: 1, onnotice: () => undefined });
  try {
    const unused = await sql<{ name: string }[]>`
      select indexname as name from pg_indexes
      where tablename = 'executions_visibility' and indexname <> all (${KEPT_INDEXES})`;
    for (const { name } of unused) await sql`drop index ${sql(name)}`;
  } finally {
    await sql.end({ timeout: 1 });
  }
}
