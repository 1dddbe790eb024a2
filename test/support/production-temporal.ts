import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freeLowPorts } from '../../dev/free-port';
import { nowAndThen } from '../../dev/now-and-then';
import { findTemporalServer } from '../../dev/temporal-postgres/executables';
import { ensureSchema } from '../../dev/temporal-postgres/schema';
import { keepTemporalCertificates } from '../../runtime/certificates/temporal-certificates';
import { startOwnPostgres } from './postgres-server';
import { removeDirectory, temporaryDirectory } from './temporary-directory';
import { startWatchdog } from './watchdog';

const root = join(__dirname, '../..');

/** A real Temporal server on Postgres with deploy/temporal/server.yaml; only ports and paths differ. Its namespaces are not made. */
export interface ProductionTemporal {
  /** `127.0.0.1:…`; its certificate is for the name `temporal`. */
  readonly address: string;
  /** `host:port` where its frontend meets the other services. */
  readonly membershipAddress: string;
  /** With the folders `server`, `client` and `console`. */
  readonly certificates: string;
  /** Settings of a process of ours, as docker-compose.yml has them. */
  readonly environment: Readonly<Record<string, string>>;
  output(): string;
  close(): Promise<void>;
}

/** @throws when the server can neither be found nor built. The first time on a machine that takes minutes. */
export async function startProductionTemporal(): Promise<ProductionTemporal> {
  const say = nowAndThen((text) => process.stderr.write(`Temporal for tests: ${text}\n`));
  const { server, sqlTool } = await findTemporalServer({
    toolsDir: process.env['TOOLS_DIR'],
    onProgress: say,
  });
  const directory = await temporaryDirectory('production-temporal');
  const dismissWatchdog = startWatchdog(directory);
  const certificates = join(directory, 'certificates');
  for (const folder of ['authority', 'server', 'client', 'console'])
    await mkdir(join(certificates, folder), { recursive: true });
  await keepTemporalCertificates(certificates, new Date());
  const postgres = await startOwnPostgres();
  await ensureSchema({ postgresUrl: postgres.url, sqlTool, onProgress: () => undefined, signal: undefined });

  const { host, username, password } = new URL(postgres.url);
  const yaml = await readFile(join(root, 'deploy/temporal/server.yaml'), 'utf8');
  const numbers = [...new Set([...yaml.matchAll(/\b[67][29]3\d\b/g)].map(([port]) => port))];
  const ports = await freeLowPorts(numbers.length);
  const portOf = (number: string) => String(ports[numbers.indexOf(number)]);
  const config = yaml
    .replaceAll(/\b[67][29]3\d\b/g, portOf)
    .replaceAll('/etc/temporal/tls', join(certificates, 'server'))
    .replace('user: temporal', `user: ${username}`);
  await mkdir(join(directory, 'deploy'));
  await writeFile(join(directory, 'deploy/server.yaml'), config, { mode: 0o600 });
  // The directory on the command line is how the watchdog finds it.
  const args = ['--root', directory, '--config', 'deploy', '--env', 'server', '--allow-no-auth', 'start'];
  const child = spawn(server, args, {
    cwd: directory,
    env: {
      PATH: process.env['PATH'],
      TEMPORAL_BIND: '127.0.0.1',
      TEMPORAL_DB_ADDRESS: host,
      TEMPORAL_DB_PASSWORD: decodeURIComponent(password),
      TEMPORAL_DYNAMIC_CONFIG: join(root, 'deploy/temporal/dynamic-config.yaml'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const ended = once(child, 'exit');
  const client = (file: string) => join(certificates, 'client', file);
  return {
    address: `127.0.0.1:${portOf('7233')}`,
    membershipAddress: `127.0.0.1:${portOf('6933')}`,
    certificates,
    environment: {
      TEMPORAL_ADDRESS: `127.0.0.1:${portOf('7233')}`,
      TEMPORAL_NAMESPACE: 'quotes',
      TEMPORAL_TLS_SERVER_NAME: 'temporal',
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: client('ca.pem'),
      TEMPORAL_TLS_CLIENT_CERT_PATH: client('cert.pem'),
      TEMPORAL_TLS_CLIENT_KEY_PATH: client('key.pem'),
    },
    output: () => output,
    async close() {
      if (child.exitCode === null) child.kill('SIGKILL');
      await ended;
      await postgres.close();
      dismissWatchdog();
      await removeDirectory(directory);
    },
  };
}
