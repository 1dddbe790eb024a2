import { Agent } from 'undici';
import { freePort } from '../../dev/ports';
import { expectDocumented } from './contract';
import { answersOk, callOver, internalPages, type CallOptions } from '../../testbed/http-call';
import { startWithFiles } from '../../testbed/project-process';
import { serviceCommand } from './compiled';
import { asRole } from '../../testbed/roles';
import { createTestTls } from '../../testbed/tls';

/** A real API process of its own (bin/api.ts), which may be killed. */
export type ApiProcess = Awaited<ReturnType<typeof startApiProcess>>;

export interface ApiProcessOptions {
  /** Of the owner; the process logs in as its role, unless its environment says otherwise. */
  readonly databaseUrl: string;
  readonly environment?: Record<string, string>;
  readonly args?: readonly string[];
}

export async function startApiProcess(options: ApiProcessOptions) {
  const tls = await createTestTls();
  const port = await freePort();
  const internalPort = await freePort();
  const api = await startWithFiles({
    name: 'api-process',
    command: await serviceCommand('bin/api.ts', options),
    files: { 'cert.pem': tls.cert, 'key.pem': tls.key },
    environment: (file) => ({
      DATABASE_URL: asRole(options.databaseUrl, 'api'),
      API_PORT: String(port),
      INTERNAL_PORT: String(internalPort),
      TLS_CERT_FILE: file('cert.pem'),
      TLS_KEY_FILE: file('key.pem'),
      RATE_LIMIT_PER_MINUTE: '10000000',
      KEYLESS_CALLS_PER_MINUTE: '10000000',
      ...options.environment,
    }),
    serves: () => answersOk(`http://127.0.0.1:${internalPort}/health`),
  });
  /** Its certificate and key, which it reads again at SIGHUP. */
  const tlsFiles = { cert: api.file('cert.pem'), key: api.file('key.pem') };
  const agent = new Agent({ connect: { ca: tls.ca, timeout: 60_000 } });
  const origin = `https://127.0.0.1:${port}`;
  const where = { origin, path: '/v1/finance-quote', key: '', dispatcher: agent, check: expectDocumented };
  return {
    ...api,
    ...internalPages(internalPort),
    port,
    internalPort,
    ca: tls.ca,
    tlsFiles,
    /** Makes a call, and holds its answer against the contract. */
    call: (wanted: CallOptions) => callOver(where, wanted),
    close: async () => {
      await agent.destroy();
      await api.close();
    },
  };
}
