import { mkdir, writeFile } from 'node:fs/promises';
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

/**
 * As deploy/temporal/dynamic-config.yaml. One partition: more of them serve queues that one server process cannot, and each costs polls and
 * forwards. 4,096 workflows in memory (20 KB each): by default 128,000 are kept, deliveries that ended long ago among them.
 * Visibility once a second in larger portions: a delivery that has ended by then is written once, not at its start and again at its end.
 */
export const DEPLOYED_CONFIG = {
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
  'history.hostLevelCacheMaxSize': 4_096,
  'history.visibilityProcessorMaxPollRPS': 1,
  'history.visibilityTaskBatchSize': 500,
} as const;

/** Writes the server's configuration into a folder. @returns the arguments that make the server read it. */
export async function writeServerConfig(folder: string, config: ServerConfig): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const dynamicFile = join(folder, 'dynamic.yaml');
  const rules = Object.entries(DEPLOYED_CONFIG).map(([name, value]) => [name, [{ value }]]);
  // JSON is YAML.
  await writeFile(dynamicFile, JSON.stringify(Object.fromEntries(rules)));
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

interface SchemaOptions {
  /** Superuser, any database of the server. */
  readonly postgresUrl: string;
  readonly sqlTool: string;
  readonly onProgress: (message: string) => void;
}

const UNUSED_INDEXES = join(__dirname, '../../deploy/temporal/visibility-indexes.sql');

/** Brings both databases to the schema of the server's version, as deploy/temporal/schema.sh does; what is there already stays. */
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
      if (name === DATABASES.visibility)
        await tool('setup-schema', '--disable-versioning', '--schema-file', UNUSED_INDEXES);
    }
  } finally {
    await sql.end({ timeout: 1 });
  }
}
