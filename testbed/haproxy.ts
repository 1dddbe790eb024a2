import { freeLowPorts, freePort } from '../dev/ports';
import { startWithFiles } from './project-process';
import { createTestTls } from './tls';

/** An API process as the proxy knows it: ports of 127.0.0.1. */
export interface ProxiedApi {
  readonly port: number;
  readonly internalPort: number;
  /** Where the proxy asks whether it is ready. Default: the internal listener. */
  readonly readyPort?: number;
}

/** A real HAProxy with deploy/proxy/haproxy.cfg as it is; only addresses differ, which come from the environment. */
export type HaProxy = Awaited<ReturnType<typeof startHaProxy>>;

/**
 * It sends to these once it is there. @param another default: one that does not answer
 * @throws when there is no `haproxy` (Debian package haproxy), or it does not start.
 */
export async function startHaProxy(api: ProxiedApi, another?: ProxiedApi) {
  const tls = await createTestTls();
  const apis: readonly ProxiedApi[] = [
    api,
    another ?? { port: await freePort(), internalPort: await freePort() },
  ];
  const [https = 0, http = 0, internal = 0, lenders = 0] = await freeLowPorts(4);
  const addresses = apis.flatMap(({ port, internalPort, readyPort = internalPort }, at) => [
    [`API_${at + 1}`, `127.0.0.1:${port}`],
    [`API_${at + 1}_READY`, String(readyPort)],
    [`API_${at + 1}_INTERNAL`, `127.0.0.1:${internalPort}`],
  ]);
  const serves = async () => {
    const page = await fetch(`http://127.0.0.1:${internal}/metrics`).then(
      (answer) => answer.text(),
      () => '',
    );
    const up = (name: string) =>
      page.includes(`\nhaproxy_server_status{proxy="api",server="${name}",state="UP"} 1\n`);
    return up('api-1') && (another === undefined || up('api-2'));
  };
  const { output, end, close } = await startWithFiles({
    name: 'haproxy',
    serves,
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
  return {
    url: `https://localhost:${https}`,
    /** The same without TLS. */
    plainUrl: `http://localhost:${http}`,
    /** `https://localhost:…` of the lender integrations. */
    lendersUrl: `https://localhost:${lenders}`,
    healthUrl: `http://127.0.0.1:${internal}/health`,
    ca: tls.ca,
    output,
    end,
    close,
  };
}
