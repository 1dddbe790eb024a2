import Fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import { Registry } from 'prom-client';
import openApi from '../contracts/internal-openapi.json';
import type { ServiceKeySummary } from '../db/keys/service-keys';
import { createKeylessLimit } from './limits';
import { type ApiMetrics, observeRequests, traceRequests } from './observe';
import { markAnswers, requestIdOf, listenerOptions, trustedProxies } from './listener';
import { serviceAuthenticator, properHttp } from './checks';
import { answerBrokenRequests, answerErrors } from './answers';
import { BODY_LIMIT_BYTES, jsonBody } from './body';
import type { RequestTracer } from '../runtime/telemetry/tracing';
import {
  createCreditApplication,
  type CreateCreditApplicationDeps,
  getCreditApplication,
  type GetCreditApplicationDeps,
  recordLenderEvent,
  type RecordLenderEventDeps,
} from './routes/credit-applications';

export interface ApplicationRoutesDeps
  extends CreateCreditApplicationDeps, RecordLenderEventDeps, GetCreditApplicationDeps {
  /** The service keys with these SHA-256, in hex; whatever their state. */
  readonly findServiceKeys: (hashes: readonly Buffer[]) => Promise<ReadonlyMap<string, ServiceKeySummary>>;
  readonly metrics: Pick<ApiMetrics, 'observeRequest' | 'crowdedQuoteApplications' | 'keylessRefused'>;
  /** Calls without a valid service key per source address and minute. */
  readonly keylessPerMinute: number;
  /** Addresses and CIDRs of proxies whose `X-Forwarded-For` names the source. */
  readonly trustedProxies: readonly string[];
  /** Null: no traces are made. */
  readonly tracer: RequestTracer | null;
}

interface InternalAppDeps {
  readonly logger: FastifyBaseLogger;
  /** What `/metrics` answers, in Prometheus' text format. */
  readonly metrics: () => Promise<string>;
  /** Resolves when the process can do its work; rejects with what it lacks. */
  readonly checkReady: () => Promise<void>;
  readonly newRequestId: () => string;
  /** Null where the process takes no credit applications. */
  readonly applications: ApplicationRoutesDeps | null;
}

/**
 * Builds the internal listener: health, readiness and metrics, and for lender integrations credit applications under
 * service keys. It speaks plain HTTP and belongs on loopback or a private network.
 */
export function buildInternalApp(deps: InternalAppDeps): FastifyInstance {
  const { logger, metrics, checkReady, newRequestId, applications } = deps;
  const app = Fastify({
    ...listenerOptions(null),
    loggerInstance: logger,
    trustProxy: trustedProxies(applications?.trustedProxies ?? []),
    genReqId: (request) => requestIdOf(request.headers, newRequestId),
    bodyLimit: BODY_LIMIT_BYTES,
  });
  answerBrokenRequests(app, newRequestId);
  markAnswers(app);
  app.addHook('onRequest', properHttp);
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
  if (applications !== null) addApplications(app, applications, logger);
  return app;
}

function addApplications(app: FastifyInstance, deps: ApplicationRoutesDeps, logger: FastifyBaseLogger): void {
  const keyless = createKeylessLimit({
    limit: deps.keylessPerMinute,
    now: deps.now,
    onRefused: () => deps.metrics.keylessRefused.inc(),
  });
  const document = JSON.stringify(openApi);
  app.get('/openapi.json', (_request, reply) => reply.type('application/json; charset=utf-8').send(document));
  void app.register(async (keyed) => {
    // Before the key: what it refuses is counted and logged too.
    traceRequests(keyed, deps.tracer);
    observeRequests(keyed, logger, deps.metrics);
    keyed.decorateRequest('service');
    keyed.addHook('onRequest', serviceAuthenticator({ ...deps, keyless }));
    createCreditApplication(keyed, deps);
    recordLenderEvent(keyed, deps);
    getCreditApplication(keyed, deps);
  });
}
