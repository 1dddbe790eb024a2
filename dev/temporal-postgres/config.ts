import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DATABASES } from './schema';

/** gRPC and membership of each service. */
export const SERVICES = ['frontend', 'history', 'matching', 'worker'] as const;

/** By names of Temporal's dynamic configuration. */
export type DynamicConfig = Readonly<Record<string, boolean | number>>;

export interface ServerConfig {
  readonly postgresUrl: string;
  /** Two for each of {@link SERVICES}; the first is where clients go. */
  readonly ports: readonly number[];
  /** In addition to {@link DEPLOYED_CONFIG}. */
  readonly dynamicConfig?: DynamicConfig | undefined;
}

/**
 * As deploy/temporal/dynamic-config.yaml. One partition: more of them serve queues that one server process cannot, and each costs polls and
 * forwards. 4,096 workflows in memory (20 KB each): by default 128,000 are kept, deliveries that ended long ago among them.
 */
export const DEPLOYED_CONFIG = {
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
  'history.hostLevelCacheMaxSize': 4_096,
} as const;

/** Writes the server's configuration into a folder. @returns the arguments that make the server read it. */
export async function writeServerConfig(folder: string, config: ServerConfig): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const dynamicFile = join(folder, 'dynamic.yaml');
  const rules = Object.entries({ ...DEPLOYED_CONFIG, ...config.dynamicConfig }).map(([name, value]) => [
    name,
    [{ value }],
  ]);
  // JSON is YAML.
  await writeFile(dynamicFile, JSON.stringify(Object.fromEntries(rules)));
  const text = JSON.stringify(serverConfig(config, dynamicFile), null, 2);
  await writeFile(join(folder, 'server.yaml'), text, { mode: 0o600 });
  return ['--root', folder, '--config', '.', '--env', 'server', '--allow-no-auth', 'start'];
}

function serverConfig({ postgresUrl, ports }: ServerConfig, dynamicFile: string) {
  const address = `127.0.0.1:${ports[0]}`;
  return {
    log: { stdout: true, level: 'error', format: 'json' },
    persistence: {
      defaultStore: 'history',
      visibilityStore: 'visibility',
      // Fixed for the life of the database.
      numHistoryShards: 4,
      datastores: {
        history: { sql: datastore(postgresUrl, DATABASES.history, 20) },
        visibility: { sql: datastore(postgresUrl, DATABASES.visibility, 10) },
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
