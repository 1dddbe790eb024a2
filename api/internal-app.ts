import Fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import { Registry } from 'prom-client';
import openApi from '../contracts/internal-openapi.json';
import type { RequestTracer } from '../runtime/telemetry/tracing';
import { answerBrokenRequests, answerErrors } from './answers';
import { BODY_LIMIT_BYTES, jsonBody } from './body';
import { ownHostOnly, properHttp, serviceAuthenticator } from './checks';
import { createKeylessLimit } from './limits';
import { listenerOptions, markAnswers, requestIdOf, trustedProxies } from './listener';
import { observeRequests, traceRequests, type ApiMetrics } from './observe';
import { serve } from './operation';
import type { ApiQueries } from './queries';
import { lenderOperations } from './routes/credit-applications';

/** What both listeners of an API process need. */
export interface ListenerDeps {
  readonly queries: ApiQueries;
  readonly metrics: ApiMetrics;
  /** Calls without a valid key per source address and minute. */
  readonly keylessPerMinute: number;
  readonly onKeyUsed: (keyId: string) => void;
  /** Addresses and CIDRs of proxies whose `X-Forwarded-*` headers count. */
  readonly trustedProxies: readonly string[];
  readonly tracer: RequestTracer | null;
}

interface InternalAppDeps {
  readonly logger: FastifyBaseLogger;
  readonly metrics: () => Promise<string>;
  readonly checkReady: () => Promise<void>;
  /** For a machine with a browser: answer for `localhost` and addresses alone. */
  readonly ownHostOnly?: boolean;
  /** Null in a process that takes no credit applications: a worker. */
  readonly applications: ListenerDeps | null;
}

/** Builds the internal listener for a private network: health, readiness, metrics and credit applications. */
export function buildInternalApp(deps: InternalAppDeps): FastifyInstance {
  const { logger, metrics, checkReady, applications } = deps;
  const proxies = applications?.trustedProxies ?? [];
  const app = Fastify({
    ...listenerOptions(null, proxies),
    loggerInstance: logger,
    trustProxy: trustedProxies(proxies),
    genReqId: requestIdOf,
    bodyLimit: BODY_LIMIT_BYTES,
  });
  answerBrokenRequests(app);
  markAnswers(app);
  app.addHook('onRequest', properHttp);
  if (deps.ownHostOnly) app.addHook('onRequest', ownHostOnly);
  jsonBody(app);
  answerErrors(app, 'internal');
  app.get('/health', () => ({ status: 'ok' }));
  app.get('/ready', async (_request, reply) => {
    try {
      await checkReady();
      return { status: 'ready' };
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown';
      return reply.code(503).send({ status: 'not ready', reason });
    }
  });
  app.get('/metrics', async (_request, reply) =>
    reply.type(Registry.PROMETHEUS_CONTENT_TYPE).send(await metrics()),
  );
  if (applications !== null) addApplications(app, applications);
  return app;
}

function addApplications(app: FastifyInstance, deps: ListenerDeps): void {
  const { queries, metrics } = deps;
  const keyless = createKeylessLimit(deps.keylessPerMinute, () => metrics.keylessRefused.inc());
  const document = JSON.stringify(openApi);
  app.get('/openapi.json', (_request, reply) => reply.type('application/json; charset=utf-8').send(document));
  void app.register(async (keyed) => {
    // These come before the check of the key, so that its refusals are counted and logged too.
    traceRequests(keyed, deps.tracer);
    observeRequests(keyed, metrics);
    keyed.decorateRequest('service');
    keyed.addHook('onRequest', serviceAuthenticator(queries.findServiceKeys, keyless, deps.onKeyUsed));
    serve(keyed, lenderOperations, deps);
  });
}
