import { freeLowPorts } from '../../dev/ports';
import { succeeds, until } from './delivery';
import { startWithFiles } from './project-process';
import { createTestTls } from './tls';

/** An API process as the proxy knows it: ports of 127.0.0.1. */
export interface ProxiedApi {
  readonly port: number;
  readonly internalPort: number;
}

/** A real HAProxy with deploy/proxy/haproxy.cfg as it is; only addresses differ, which come from the environment. */
export type HaProxy = Awaited<ReturnType<typeof startHaProxy>>;

/** @throws when there is no `haproxy` (Debian package haproxy), or it does not start. */
export async function startHaProxy(apis: readonly [ProxiedApi, ProxiedApi]) {
  const tls = await createTestTls();
  const [https = 0, http = 0, internal = 0, lenders = 0] = await freeLowPorts(4);
  const addresses = apis.flatMap(({ port, internalPort }, at) => [
    [`API_${at + 1}`, `127.0.0.1:${port}`],
    [`API_${at + 1}_READY`, String(internalPort)],
    [`API_${at + 1}_INTERNAL`, `127.0.0.1:${internalPort}`],
  ]);
  const { running, output, close } = await startWithFiles({
    name: 'haproxy',
    command: (file) => ['haproxy', '-db', '-f', 'deploy/proxy/haproxy.cfg', '-p', file('haproxy.pid')],
    files: { 'tls.pem': tls.cert + tls.key },
    environment: (file) => ({
      PATH: `${process.env['PATH']}:/usr/sbin`,
      PROXY_HTTPS: `127.0.0.1:${https}`,
      PROXY_HTTP: `127.0.0.1:${http}`,
      PROXY_INTERNAL: `127.0.0.1:${internal}`,
      PROXY_PEM: file('tls.pem'),
      PROXY_LENDERS: `127.0.0.1:${lenders}`,
      ...Object.fromEntries(addresses),
    }),
  });
  const metrics = async () => (await fetch(`http://127.0.0.1:${internal}/metrics`)).text();
  const answers = () => succeeds(metrics());
  await until(async () => !running() || answers(), 'HAProxy answers').catch(() => undefined);
  if (!(await answers())) {
    await close();
    throw new Error(`HAProxy (Debian package haproxy) did not start:\n${output()}`);
  }
  return {
    url: `https://localhost:${https}`,
    /** The same without TLS. */
    plainUrl: `http://localhost:${http}`,
    /** `https://localhost:…` of the lender integrations. */
    lendersUrl: `https://localhost:${lenders}`,
    healthUrl: `http://127.0.0.1:${internal}/health`,
    ca: tls.ca,
    /** Which of api-1 and api-2 it sends requests to. */
    async up() {
      const lines = (await metrics()).split('\n');
      return ['api-1', 'api-2'].filter((name) =>
        lines.includes(`haproxy_server_status{proxy="api",server="${name}",state="UP"} 1`),
      );
    },
    output,
    close,
  };
}
