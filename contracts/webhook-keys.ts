import { z } from 'zod';
import { answerSchema } from './answer';
import { momentField, text } from './partner-fields';

/** The answer of `GET /v1/webhook-keys`. */
export const webhookKeysSchema = answerSchema('WebhookKeysResponse', {
  keys: z
    .array(
      z.object({
        key_id: text('The key pair.', 'whk_01KAF1Z4Q0T6M5S7Y2W3X4V5BB'),
        environment: z
          .enum(['sandbox', 'live'])
          .meta({ description: 'That of your API key: each environment has keys of its own.' }),
        public_key: z
          .string()
          .regex(/^whpk_[A-Za-z0-9+/]{43}=$/)
          .meta({
            description: 'An Ed25519 public key: behind `whpk_` its 32 bytes in base64 (Standard Webhooks).',
            examples: ['whpk_FaCfdUJ00pIXCgidyiMBaEczFZlV3jtt/O1+eJBkM5Y='],
          }),
        not_after: momentField(
          'From this moment on nothing is signed with it, and it is not listed any more. Null: no end is planned.',
        ).nullable(),
      }),
    )
    .meta({
      description:
        'Newest first. More than one while a key is being changed for another: each webhook then has a signature of every key ' +
        'listed. Empty before your first webhook address is registered.',
    }),
});

export type WebhookKeysBody = z.infer<typeof webhookKeysSchema>;
