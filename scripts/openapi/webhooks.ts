import type { z } from 'zod';
import type { Examples } from '../../contracts/fields';
import {
  applicationEventExamples,
  applicationEventSchema,
  testEventExamples,
  testEventSchema,
} from '../../contracts/webhook-event';
import { componentSchemas, type Json } from './portable';

const header = (name: string, description: string, schema: Json): Json => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string', ...schema },
});

const signatureParameters: readonly Json[] = [
  header(
    'Service-Signature',
    'When it was signed, in Unix seconds, and for each of your live secrets the HMAC-SHA256 of `<t>.<body>` in hex. The key is ' +
      'what follows `whsec_` in the secret, decoded from base64.',
    { pattern: '^t=\\d+(,v1=[0-9a-f]{64}){1,3}$' },
  ),
  header('webhook-id', 'The `event_id` (Standard Webhooks).', {
    examples: ['evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B9'],
  }),
  header('webhook-timestamp', 'When it was signed, in Unix seconds (Standard Webhooks).', {
    pattern: '^\\d+$',
  }),
  header(
    'webhook-signature',
    'Over `<webhook-id>.<webhook-timestamp>.<body>` (Standard Webhooks), in base64: for each of your live secrets `v1,` and the ' +
      'HMAC-SHA256, then for each key of `GET /v1/webhook-keys` `v1a,` and the Ed25519 signature. One that verifies is enough.',
    { pattern: '^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=){0,2}( v1a,[A-Za-z0-9+/]{86}==){1,3}$' },
  ),
];

/** It stands in the webhook itself: oapi-codegen drops a component that no call refers to, and then does not compile. */
function content(schema: z.ZodType, examples: Examples): Json {
  const [[title, body] = ['', {}]] = Object.entries(componentSchemas([[schema, 'output']]));
  return { 'application/json': { schema: { title, ...(body as Json) }, examples } };
}

const responses: Json = {
  '2XX': { description: 'Received. Answer as soon as it is stored; the body of the answer is ignored.' },
  '410': { description: 'No more: the endpoint is disabled, and what is still to come is held for 30 days.' },
  default: {
    description:
      'Not received, redirects included: it is sent again, up to 11 times within 76 hours (a test event 3 times within a ' +
      'minute). `Retry-After` is heeded, up to 10 hours.',
  },
};

const received = (
  schema: z.ZodType,
  examples: Examples,
  title: { readonly operationId: string; readonly summary: string; readonly description: string },
  body: { readonly description?: string },
  own: readonly Json[] = [],
): Json => ({
  post: {
    ...title,
    tags: ['Webhooks'],
    security: [],
    parameters: [...own, ...signatureParameters],
    requestBody: {
      required: true,
      ...body,
      content: content(schema, examples),
    },
    responses,
  },
});

/** What we send to partners. */
export const webhooks: Json = {
  creditApplicationEvent: received(
    applicationEventSchema,
    applicationEventExamples,
    {
      operationId: 'receiveCreditApplicationEvent',
      summary: 'The state of a credit application has changed',
      description:
        'Check the signature over the raw bytes of the body and refuse what is older than five minutes. The same event may come ' +
        'more than once (drop an `event_id` that you have seen), and late (drop a `sequence` below the highest of that application).',
    },
    { description: 'At most 20 KB.' },
  ),
  testEvent: received(
    testEventSchema,
    testEventExamples,
    {
      operationId: 'receiveTestEvent',
      summary: 'A test notification',
      description:
        'Sent by `POST /v1/notifications/test`. Check the signature, answer 2xx, and drop it: it stands for no application.',
    },
    {},
    [header('Service-Test', 'Only test events have it.', { examples: ['true'] })],
  ),
};
