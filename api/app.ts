import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import { answerBrokenRequests, answerErrors } from './answers';
import { BODY_LIMIT_BYTES, jsonBody } from './body';
import type { Catalogue } from './catalogue';
import { authenticator, cameOverHttps, requireHttps, type Caller } from './checks';
import { createKeylessLimit, limitConnections, rateLimits, type RateLimiter } from './limits';
import type { ListenerDeps } from './internal-app';
import { listenerOptions, markAnswers, requestIdOf, trustedProxies, type TlsFiles } from './listener';
import { observeRequests, traceRequests, type ApiMetrics } from './observe';
import { serve } from './operation';
import { getDocumentation } from './routes/get-documentation';
import type { GetFinanceQuoteDeps } from './routes/get-finance-quote';
import { partnerOperations } from './routes/operations';
import type { SendTestNotificationDeps } from './routes/send-test-notification';

interface AppDeps extends ListenerDeps, Omit<GetFinanceQuoteDeps, 'catalogue'>, SendTestNotificationDeps {
  readonly catalogue: Catalogue;
  readonly limiter: RateLimiter;
  readonly logger: FastifyBaseLogger;
  readonly metrics: ApiMetrics;
  /** Certificate and key in PEM; null: plain HTTP behind a proxy that is named below. */
  readonly tls: TlsFiles | null;
  /** Where partners reach the service: `https://…`, without a slash at the end. */
  readonly publicUrl: string;
}

/**
 * Builds the public listener. It checks HTTPS, path, method, key, rate limit, body and contract, in this
 * order.
 */
export function buildApp(deps: AppDeps): FastifyInstance {
  const { logger, metrics } = deps;
  const proxied = deps.trustedProxies.length > 0;
  const keyless = createKeylessLimit(deps.keylessPerMinute, () => metrics.keylessRefused.inc());
  const authenticate = authenticator(deps.catalogue, deps.onKeyUsed);
  const { countCall, checkRateLimit } = rateLimits(deps.limiter, () => metrics.rateLimitRefused.inc());
  const app = Fastify({
    ...listenerOptions(deps.tls, deps.trustedProxies),
    loggerInstance: logger,
    trustProxy: trustedProxies(deps.trustedProxies),
    genReqId: requestIdOf,
    bodyLimit: BODY_LIMIT_BYTES,
    forceCloseConnections: 'idle',
  });
  const connections = proxied ? null : limitConnections(app.server, () => metrics.connectionsClosed.inc());
  answerBrokenRequests(app, observeRequests(app, metrics));
  markAnswers(app);
  metrics.observeConnections(app);
  traceRequests(app, deps.tracer);
  requireHttps(app);
  jsonBody(app);
  // Declared here so that all requests have the same shape, which V8 optimises.
  app.decorateRequest('caller');
  answerErrors(app, 'public', countRefused);

  void app.register(async (keyed) => {
    keyed.addHook('onRequest', async (request, reply) => {
      const caller = authenticate(request);
      request.caller = caller instanceof Promise ? await caller : caller;
      await checkRateLimit(request.caller.keyId, reply);
      connections?.proven(request.raw.socket);
    });
    serve(keyed, partnerOperations, deps);
  });
  void app.register(async (open) => {
    open.addHook('onRequest', async (request, reply) => {
      const caller = await callerOf(request);
      if (caller === null) await keyless.count(request, reply);
      else await checkRateLimit(caller.keyId, reply);
    });
    getDocumentation(open, deps.publicUrl);
  });
  return app;

  /** The caller of a route that needs no key; null without a valid key, or while keys cannot be checked. */
  async function callerOf(request: FastifyRequest): Promise<Caller | null> {
    try {
      request.caller = await authenticate(request);
      connections?.proven(request.raw.socket);
      return request.caller;
    } catch {
      return null;
    }
  }
  /**
   * Counts a call refused before its key was checked, such as an unknown path: for a valid key, else
   * its address. Over HTTP no key is read.
   */
  async function countRefused(code: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const unseen = code !== 'UNAUTHENTICATED' && cameOverHttps(request);
    const caller = unseen ? await callerOf(request) : null;
    if (caller !== null) await countCall(caller.keyId, reply);
    else await keyless.count(request, reply);
  }
}
