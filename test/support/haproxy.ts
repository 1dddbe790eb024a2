import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freeLowPorts } from '../../dev/ports';
import { until } from './delivery';
import { removeDirectory, temporaryDirectory } from './temporary-directory';
import { createTestTls } from './tls';
import { startWatchdog } from './watchdog';

/** An API process as the proxy knows it: ports of 127.0.0.1. */
export interface ProxiedApi {
  readonly port: number;
  readonly internalPort: number;
}

/** A real HAProxy with deploy/proxy/haproxy.cfg as it is; only addresses differ, which come from the environment. */
export type HaProxy = Awaited<ReturnType<typeof startHaProxy>>;

/** @throws when there is no `haproxy` (Debian package haproxy), or it does not start. */
export async function startHaProxy(apis: readonly [ProxiedApi, ProxiedApi]) {
  const directory = await temporaryDirectory('haproxy');
  const dismissWatchdog = startWatchdog(directory);
  const tls = await createTestTls();
  const pem = join(directory, 'tls.pem');
  await writeFile(pem, tls.cert + tls.key, { mode: 0o600 });
  const [https = 0, http = 0, internal = 0, lenders = 0] = await freeLowPorts(4);
  // The directory on the command line is how the watchdog finds it.
  const child = spawn(
    'haproxy',
    ['-db', '-f', 'deploy/proxy/haproxy.cfg', '-p', join(directory, 'haproxy.pid')],
    {
      cwd: join(__dirname, '../..'),
      env: {
        PATH: `${process.env['PATH']}:/usr/sbin`,
        PROXY_HTTPS: `127.0.0.1:${https}`,
        PROXY_HTTP: `127.0.0.1:${http}`,
        PROXY_INTERNAL: `127.0.0.1:${internal}`,
        PROXY_PEM: pem,
        PROXY_LENDERS: `127.0.0.1:${lenders}`,
        API_1: `127.0.0.1:${apis[0].port}`,
        API_1_READY: String(apis[0].internalPort),
        API_1_INTERNAL: `127.0.0.1:${apis[0].internalPort}`,
        API_2: `127.0.0.1:${apis[1].port}`,
        API_2_READY: String(apis[1].internalPort),
        API_2_INTERNAL: `127.0.0.1:${apis[1].internalPort}`,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.once('error', (error) => (output += `${error.message} (Debian package haproxy)`));
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const close = async () => {
    child.kill('SIGKILL');
    await ended;
    dismissWatchdog();
    await removeDirectory(directory);
  };
  const metrics = async () => (await fetch(`http://127.0.0.1:${internal}/metrics`)).text();
  const answers = () =>
    metrics().then(
      () => true,
      () => false,
    );
  await until(
    async () => child.exitCode !== null || child.pid === undefined || answers(),
    'HAProxy answers',
  ).catch(() => undefined);
  if (!(await answers())) {
    await close();
    throw new Error(`HAProxy did not start:\n${output}`);
  }
  return {
    url: `https://localhost:${https}`,
    /** The same without TLS. */
    plainUrl: `http://localhost:${http}`,
    /** `https://localhost:…` of the lender integrations. */
    lendersUrl: `https://localhost:${lenders}`,
    pid: child.pid ?? 0,
    healthUrl: `http://127.0.0.1:${internal}/health`,
    ca: tls.ca,
    /** Which of api-1 and api-2 it sends requests to. */
    async up() {
      const lines = (await metrics()).split('\n');
      return ['api-1', 'api-2'].filter((name) =>
        lines.includes(`haproxy_server_status{proxy="api",server="${name}",state="UP"} 1`),
      );
    },
    output: () => output,
    close,
  };
}
