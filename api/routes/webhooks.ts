import {
  webhookEndpointExamples,
  webhookEndpointSchema,
  webhookKeysExamples,
  webhookKeysSchema,
} from '../../contracts/webhook-endpoint';
import { MOST_HELD } from '../../db/endpoints/endpoints';
import { answerer } from '../answers';
import { operation } from '../operation';
import type { WithQueries } from '../queries';

const getWebhookEndpoint = operation({
  call: 'GET /v1/webhook-endpoint',
  id: 'getWebhookEndpoint',
  tag: 'Notifications',
  summary: 'Read where webhooks go, and how that does',
  description:
    'Whether it is active, since when it fails, and how many notifications are held until it is active again.',
  answers: {
    200: ['The endpoint of the environment of the key.', webhookEndpointSchema, webhookEndpointExamples],
  },
  handler: ({ queries }: WithQueries) => {
    const sendAnswer = answerer(webhookEndpointSchema);
    return async ({ caller }, reply) => {
      const { state, url, disabledReason, held, ...found } = await queries.webhookEndpoint(caller);
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
    };
  },
});

const listWebhookKeys = operation({
  call: 'GET /v1/webhook-keys',
  id: 'listWebhookKeys',
  tag: 'Notifications',
  summary: 'List the public keys of webhooks',
  description:
    'The keys that webhooks of the environment of the key are signed with (`v1a` in `webhook-signature`), for a receiver that ' +
    'keeps no shared secret. Keep the list for a day at most, and read it again when nothing verifies, once a minute at most. ' +
    'The keys are yours alone: no other partner has the same.',
  answers: { 200: ['The keys, newest first.', webhookKeysSchema, webhookKeysExamples] },
  handler: ({ queries }: WithQueries) => {
    const sendAnswer = answerer(webhookKeysSchema);
    return async ({ caller }, reply) => {
      const keys = await queries.webhookKeys(caller);
      return sendAnswer(reply, {
        keys: keys.map(({ keyPairId, environment, publicKey, expiresAt }) => ({
          key_id: keyPairId,
          environment,
          public_key: publicKey,
          not_after: expiresAt?.toISOString() ?? null,
        })),
      });
    };
  },
});

export const webhookOperations = [getWebhookEndpoint, listWebhookKeys];
