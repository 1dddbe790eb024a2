import { z } from 'zod';
import { answered, answerSchema, count, momentField, text, textOrNull } from './fields';

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

/** The first is the pair of the guide's signed event (scripts/documentation/signed-example.ts). */
export const webhookKeysExamples = {
  one: answered<WebhookKeysBody>('The usual case', {
    keys: [
      {
        key_id: 'whk_01KAF1Z4Q0T6M5S7Y2W3X4V5BB',
        environment: 'sandbox',
        public_key: 'whpk_d4NQYR9dYD1xCI/Rq7l/u2wgIpJ5hGd9e3x/pPMYKAE=',
        not_after: null,
      },
    ],
  }),
  rotating: answered<WebhookKeysBody>('While one key is being changed for another', {
    keys: [
      {
        key_id: 'whk_01KAHMR8V0B2C4D6E8F0G2H4J6',
        environment: 'live',
        public_key: 'whpk_EyPofidU/xkBO9kFz0yRaeM20kp2oTZtvUmmWV4xEt4=',
        not_after: null,
      },
      {
        key_id: 'whk_01KAF1Z4Q0T6M5S7Y2W3X4V5BC',
        environment: 'live',
        public_key: 'whpk_y+S9PkAL/cs3EdOxI1NS6kpTTW1hidZkQR8C//nFF+w=',
        not_after: '2026-11-23T12:00:00.000Z',
      },
    ],
  }),
};

export const webhookEndpointSchema = answerSchema('WebhookEndpointResponse', {
  state: z.enum(['active', 'disabled', 'none']).meta({
    description:
      'Of the endpoint of the environment of the key: `disabled`: nothing is sent to it. `none`: you have none.',
  }),
  url: textOrNull('Where events go.', 'https://hooks.partner.example/finance'),
  disabled_at: momentField('When it was disabled, for the reason below; null unless it is.').nullable(),
  disabled_reason: z.enum(['gone', 'failing', 'operator']).nullable().meta({
    description:
      '`gone`: it answered 410. `failing`: nothing but failures for 120 hours. `operator`: we did. Null unless it is disabled.',
  }),
  failing_since: momentField('The first failure since the last 2xx; null without one.').nullable(),
  last_success_at: momentField(
    'The last 2xx, or one at most a minute before it; null without one.',
  ).nullable(),
  held: count('Notifications that are held until there is an active endpoint; 10000 at most.', 0),
  held_is_minimum: z.literal(true).optional().meta({ description: 'Present when more are held.' }),
});

type WebhookEndpointBody = z.infer<typeof webhookEndpointSchema>;

export const webhookEndpointExamples = {
  failing: answered<WebhookEndpointBody>('One that fails', {
    state: 'active',
    url: 'https://hooks.partner.example/finance',
    disabled_at: null,
    disabled_reason: null,
    failing_since: '2026-11-21T12:00:00.120Z',
    last_success_at: '2026-11-21T11:58:03.400Z',
    held: 0,
  }),
};
