import Fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import { listenerOptions, quietLogs } from './server-options';

export interface InternalAppDeps {
  readonly logger: FastifyBaseLogger;
  readonly registry: Registry;
  /** Resolves when the process can do its work; rejects with what it lacks. */
  readonly checkReady: () => Promise<void>;
}

/** Builds the internal listener: health, readiness and metrics. It belongs on loopback or a private network. */
export function buildInternalApp({ logger, registry, checkReady }: InternalAppDeps): FastifyInstance {
  const app = Fastify({ ...listenerOptions(null), loggerInstance: logger, logController: quietLogs() });
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
    reply.type(registry.contentType).send(await registry.metrics()),
  );
  return app;
}
