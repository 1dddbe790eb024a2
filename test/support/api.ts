import { Agent, request } from 'undici';
import { readConfig } from '../../runtime/config/config';
import { createLogger } from '../../runtime/telemetry/logger';
import { startApi } from '../../api/start-api';
import { expectDocumented } from './contract';
import { createTestDatabase, openDatabaseAt } from './database';
import { emitMetrics, emittedBy } from '../../testbed/emitted';
import { callOver, internalPages, type CallOptions } from '../../testbed/http-call';
import { demand } from './on-demand';
import { addPartner } from './partner-events';
import { asRole } from '../../testbed/roles';
import type { TestTls } from '../../testbed/tls';
import { PARTNER_ID, goodQuote } from '../../testbed/values';

/** A real API process in this one: TLS, Postgres, both listeners, on free ports. */
export type TestApi = Awaited<ReturnType<typeof startTestApi>>;

export interface TestApiOptions {
  readonly environment?: Record<string, string>;
  /** Of loopback: the API's pools reach Postgres through it, and its change feed directly. */
  readonly poolPort?: number;
  /** An existing database to use; it is not dropped. */
  readonly databaseUrl?: string;
  /** Keys that exist in that database already. */
  readonly keys?: { readonly test: string; readonly live: string };
  readonly ownTls?: boolean;
  /** Of the change feed. */
  readonly listenUrl?: string;
  /** Longest wait for Redis, in milliseconds. */
  readonly redisTimeoutMs?: number;
}

export async function startTestApi(options: TestApiOptions = {}) {
  const clone = options.databaseUrl === undefined ? await createTestDatabase() : undefined;
  const databaseUrl = options.databaseUrl ?? clone?.url ?? '';
  const forApi = asRole(databaseUrl, 'api');
  const pools = new URL(forApi);
  if (options.poolPort !== undefined) pools.port = String(options.poolPort);
  const database = openDatabaseAt(databaseUrl, { poolSize: 4, statementTimeoutMs: 0 });
  const keys = options.keys ?? (await addPartner(database, PARTNER_ID));
  // One for the run: to make it takes a tenth of a second of each file.
  const tls = await demand<TestTls>('tls');
  const logs: string[] = [];
  const emit = emittedBy('api-log');
  const write = (line: string) => {
    logs.push(line);
    emit(line);
  };
  const api = await startApi({
    config: readConfig({
      LOG_LEVEL: 'info',
      RATE_LIMIT_PER_MINUTE: '1000000',
      KEYLESS_CALLS_PER_MINUTE: '1000000',
      // Only a call that a starved test machine cannot serve would take that long.
      DATABASE_TIMEOUT_MS: '20000',
      ...options.environment,
    }),
    databaseUrl: pools.href,
    tls: options.ownTls === false ? null : tls,
    logger: createLogger({ LOG_LEVEL: 'info' }, { write }),
    listenUrl: options.listenUrl ?? forApi,
    ...(options.redisTimeoutMs !== undefined && { redisTimeoutMs: options.redisTimeoutMs }),
    ports: { api: 0, internal: 0 },
  });
  // Two hundred handshakes at once take a busy machine longer than the ten seconds of the default.
  const agent = new Agent({ connect: { ca: tls.ca, timeout: 60_000 } });
  const scheme = options.ownTls === false ? 'http' : 'https';

  const origin = `${scheme}://127.0.0.1:${api.apiPort}`;
  const call = (wanted: CallOptions = {}) =>
    callOver(
      {
        origin,
        path: '/v1/finance-quote',
        key: keys.test,
        dispatcher: agent,
        check: (made, answer) => {
          if (made.path !== '/openapi.json') expectDocumented(made, answer);
        },
      },
      wanted,
    );
  return {
    port: api.apiPort,
    internalPort: api.internalPort,
    ca: tls.ca,
    partnerId: PARTNER_ID,
    keys,
    database,
    databaseUrl,
    logs,
    /** The lines that hold this text. */
    // oxlint-disable-next-line typescript/no-explicit-any -- lines of every form
    logged: (text: string): any[] =>
      logs.filter((line) => line.includes(text)).map((line) => JSON.parse(line)),
    ...internalPages(api.internalPort),
    call,
    get: (path: string, key: string | null = keys.test) => call({ method: 'GET', path, key }),
    /** `POST /v1/finance-quote` with a good body changed by these fields. */
    quote: (fields: Record<string, unknown> = {}, callOptions: CallOptions = {}) =>
      call({ body: { ...goodQuote, ...fields }, ...callOptions }),
    async fetchText(path: string) {
      const answer = await request(`${origin}${path}`, { dispatcher: agent });
      return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
    },
    async close() {
      await agent.destroy();
      await emitMetrics(api.internalPort);
      await api.close();
      await database.close();
      await clone?.close();
    },
  };
}

/** One for the tests of a file: open from its first hook to its last. @param prepare what comes before it, with its options */
export function useApi(prepare: TestApiOptions | (() => Promise<TestApiOptions>) = {}): TestApi {
  const api = {} as TestApi;
  beforeAll(async () => {
    const options = typeof prepare === 'function' ? await prepare() : prepare;
    Object.assign(api, await startTestApi(options));
  });
  afterAll(() => api.close());
  return api;
}
