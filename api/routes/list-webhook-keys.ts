import type { Tenant } from '../../domain/tenant';
import type { FastifyInstance } from 'fastify';
import { webhookKeysSchema, type WebhookKeysBody } from '../../contracts/webhook-event';
import type { PublicKey } from '../../db/endpoints/key-pairs';
import { answerer } from '../answers';

export interface ListWebhookKeysDeps {
  /** Those that sign now, newest first. */
  readonly webhookKeys: (owner: Tenant) => Promise<readonly PublicKey[]>;
}

/** `GET /v1/webhook-keys`. */
export function listWebhookKeys(app: FastifyInstance, deps: ListWebhookKeysDeps): void {
  const sendAnswer = answerer(webhookKeysSchema);

  app.get('/v1/webhook-keys', async (request, reply) => {
    return sendAnswer(reply, { keys: (await deps.webhookKeys(request.caller)).map(toWire) });
  });
}

const toWire = (key: PublicKey): WebhookKeysBody['data']['keys'][number] => ({
  key_id: key.keyPairId,
  environment: key.environment,
  public_key: key.publicKey,
  not_after: key.expiresAt?.toISOString() ?? null,
});
