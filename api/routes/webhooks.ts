import type { FastifyInstance } from 'fastify';
import { webhookEndpointSchema, webhookKeysSchema } from '../../contracts/webhook-event';
import { MOST_HELD } from '../../db/endpoints/endpoints';
import { answerer } from '../answers';
import type { ApiQueries } from '../queries';

export function listWebhookKeys(app: FastifyInstance, queries: ApiQueries): void {
  const sendAnswer = answerer(webhookKeysSchema);

  app.get('/v1/webhook-keys', async (request, reply) => {
    const keys = await queries.webhookKeys(request.caller);
    return sendAnswer(reply, {
      keys: keys.map(({ keyPairId, environment, publicKey, expiresAt }) => ({
        key_id: keyPairId,
        environment,
        public_key: publicKey,
        not_after: expiresAt?.toISOString() ?? null,
      })),
    });
  });
}

export function getWebhookEndpoint(app: FastifyInstance, queries: ApiQueries): void {
  const sendAnswer = answerer(webhookEndpointSchema);

  app.get('/v1/webhook-endpoint', async (request, reply) => {
    const { state, url, disabledReason, held, ...found } = await queries.webhookEndpoint(request.caller);
    return sendAnswer(reply, {
      state,
      url,
      disabled_at: found.disabledAt?.toISOString() ?? null,
      disabled_reason: disabledReason,
      failing_since: found.failingSince?.toISOString() ?? null,
      last_success_at: found.lastSuccessAt?.toISOString() ?? null,
      held: Math.min(held, MOST_HELD),
      ...(held > MOST_HELD && { held_is_minimum: true as const }),
    });
  });
}
