import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import type { Catalogue } from './catalogue';
import { limitConnections, createKeylessLimit, type RateLimiter, rateLimits } from './limits';
import { type ApiMetrics, observeRequests, traceRequests } from './observe';
import { markAnswers, requestIdOf, listenerOptions, type TlsFiles, trustedProxies } from './listener';
import { authenticator, type Caller, cameOverHttps, requireHttps } from './checks';
import { answerBrokenRequests, answerErrors } from './answers';
import { BODY_LIMIT_BYTES, emptyBody, jsonBody, knownQuery } from './body';
import type { RequestTracer } from '../runtime/telemetry/tracing';
import { getDocumentation } from './routes/get-documentation';
import { getFinanceQuote, type GetFinanceQuoteDeps } from './routes/get-finance-quote';
import {
  getApplicationForPartner,
  type GetApplicationForPartnerDeps,
} from './routes/get-application-for-partner';
import {
  getNotification,
  type GetNotificationDeps,
  listNotifications,
  type ListNotificationsDeps,
  resendNotification,
  type ResendNotificationDeps,
} from './routes/notifications';
import {
  getRecovery,
  type GetRecoveryDeps,
  recoverNotifications,
  type RecoverNotificationsDeps,
} from './routes/recoveries';
import { listWebhookKeys, type ListWebhookKeysDeps } from './routes/list-webhook-keys';
import { sendTestNotification, type SendTestNotificationDeps } from './routes/send-test-notification';

export interface AppDeps extends Omit<GetFinanceQuoteDeps, 'catalogue'>, SendTestNotificationDeps {
  /** For the partners' own endpoints. */
  readonly events: ListNotificationsDeps &
    GetNotificationDeps &
    ResendNotificationDeps &
    RecoverNotificationsDeps &
    GetRecoveryDeps &
    GetApplicationForPartnerDeps &
    ListWebhookKeysDeps;
  readonly catalogue: Catalogue;
  readonly limiter: RateLimiter;
  /** Calls without a valid key per source address and minute. */
  readonly keylessPerMinute: number;
  readonly logger: FastifyBaseLogger;
  readonly metrics: ApiMetrics;
  readonly newRequestId: () => string;
  /** Null: no traces are made. */
  readonly tracer: RequestTracer | null;
  /** Certificate and key in PEM; null: plain HTTP behind a proxy that is named below. */
  readonly tls: TlsFiles | null;
  /** Addresses and CIDRs of proxies whose `X-Forwarded-*` headers count. */
  readonly trustedProxies: readonly string[];
}

/**
 * Builds the public listener without opening a port. Checks run in this order: HTTPS, path and method,
 * key, rate limit, body, contract, merchant, limits.
 */
export function buildApp(deps: AppDeps): FastifyInstance {
  const { logger, metrics, newRequestId, now } = deps;
  const proxied = deps.trustedProxies.length > 0;
  const keyless = createKeylessLimit({
    limit: deps.keylessPerMinute,
    now,
    onRefused: () => metrics.keylessRefused.inc(),
  });
  const authenticate = authenticator(deps.catalogue, now);
  const { countCall, checkRateLimit } = rateLimits(deps.limiter, now, () => metrics.rateLimitRefused.inc());
  const app = Fastify({
    ...listenerOptions(deps.tls),
    loggerInstance: logger,
    // Of no proxy no header counts.
    trustProxy: proxied && trustedProxies(deps.trustedProxies),
    genReqId: (request) => requestIdOf(request.headers, newRequestId),
    bodyLimit: BODY_LIMIT_BYTES,
    forceCloseConnections: 'idle',
  });
  const connections = proxied ? null : limitConnections(app.server, () => metrics.connectionsClosed.inc());
  answerBrokenRequests(app, newRequestId, observeRequests(app, logger, metrics));
  markAnswers(app);
  metrics.observeConnections(app);
  traceRequests(app, deps.tracer);
  requireHttps(app);
  jsonBody(app);
  // Each request gets its own caller below; null keeps the shape of the object, which V8 likes.
  app.decorateRequest('caller');
  answerErrors(app, 'public', countRefused);

  void app.register(async (keyed) => {
    keyed.addHook('onRequest', async (request, reply) => {
      const caller = authenticate(request);
      request.caller = caller instanceof Promise ? await caller : caller;
      await checkRateLimit(request.caller.keyId, reply);
      connections?.proven(request.raw.socket);
    });
    getFinanceQuote(keyed, deps);
    await keyed.register(async (strict) => {
      knownQuery(strict);
      listNotifications(strict, deps.events);
      getNotification(strict, deps.events);
      recoverNotifications(strict, deps.events);
      getRecovery(strict, deps.events);
      getApplicationForPartner(strict, deps.events);
      listWebhookKeys(strict, deps.events);
      await strict.register(async (bodiless) => {
        emptyBody(bodiless);
        sendTestNotification(bodiless, deps);
        resendNotification(bodiless, deps.events);
      });
    });
  });
  void app.register(async (open) => {
    open.addHook('onRequest', async (request, reply) => {
      const caller = await callerOf(request);
      if (caller === null) await keyless.count(request, reply);
      else await checkRateLimit(caller.keyId, reply);
    });
    getDocumentation(open);
  });
  return app;

  /** Whose call it is where no key is needed; null when it brings none that is valid, or when that cannot be known now. */
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
   * A call that is refused before its key was looked at, such as one that leads nowhere, counts for its key if that is valid: the
   * refusal is the same above the limit. Every other counts for its address. Over plain HTTP no key is looked at.
   */
  async function countRefused(code: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const unseen = code !== 'UNAUTHENTICATED' && cameOverHttps(request);
    const caller = unseen ? await callerOf(request) : null;
    if (caller !== null) await countCall(caller.keyId, reply);
    else await keyless.count(request, reply);
  }
}
