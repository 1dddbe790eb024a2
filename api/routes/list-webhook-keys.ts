import type { FastifyInstance } from 'fastify';
import { webhookKeysSchema } from '../../contracts/webhook-event';
import { answerer } from '../answers';
import type { ApiQueries } from '../queries';

/** `GET /v1/webhook-keys`: those that sign now, newest first. */
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
