import { testLenders } from '../../contracts/webhook-event';
import {
  APPLICATION_EVENT_EXAMPLES,
  TEST_ENDED_EXAMPLES,
  TEST_EVENT_EXAMPLES,
  TEST_PENDING_EXAMPLES,
} from './examples';
import {
  errorResponse,
  type Json,
  keyedAnswer,
  keyedHeaders,
  ourFault,
  ref,
  requestIdHeader,
  requestIdRefs,
  tooMany,
  unauthenticated,
} from './parts';

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

const responses: Json = {
  '2XX': { description: 'Received. Answer as soon as it is stored; the body of the answer is ignored.' },
  '410': { description: 'No more: the endpoint is disabled, and what is still to come is held for 30 days.' },
  default: {
    description:
      'Not received, redirects included: it is sent again, up to 11 times within 76 hours (a test event 3 times within a ' +
      'minute). `Retry-After` is heeded, up to 10 hours.',
  },
};

/** What we send to partners. */
export const webhooks: Json = {
  creditApplicationEvent: {
    post: {
      operationId: 'receiveCreditApplicationEvent',
      summary: 'The state of a credit application has changed',
      description:
        'Check the signature over the raw bytes of the body and refuse what is older than five minutes. The same event may come ' +
        'more than once (drop an `event_id` that you have seen), and late (drop a `sequence` below the highest of that application).',
      tags: ['Notifications'],
      parameters: signatureParameters,
      requestBody: {
        required: true,
        description: 'At most 20 KB.',
        content: {
          'application/json': {
            schema: ref('schemas', 'CreditApplicationEvent'),
            examples: APPLICATION_EVENT_EXAMPLES,
          },
        },
      },
      responses,
    },
  },
  testEvent: {
    post: {
      operationId: 'receiveTestEvent',
      summary: 'A test notification',
      description:
        'Sent by `POST /v1/notifications/test`. Check the signature, answer 2xx, and drop it: it stands for no application.',
      tags: ['Notifications'],
      parameters: [
        header('Service-Test', 'Only test events have it.', { const: 'true' }),
        ...signatureParameters,
      ],
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: ref('schemas', 'TestEvent'), examples: TEST_EVENT_EXAMPLES },
        },
      },
      responses,
    },
  },
};

/** `POST /v1/notifications/test`. */
export const sendTestNotification: Json = {
  operationId: 'sendTestNotification',
  summary: 'Send a test notification',
  description:
    'Sends a signed `credit_application.test` event to the endpoint that is registered for the environment of the key, and ' +
    'waits up to 10 seconds for what comes of the first attempt. Send no body. 100 deliveries are allowed per environment ' +
    'and month (UTC); one that is under way counts until it has ended. Set your timeout to 15 seconds or more.',
  tags: ['Notifications'],
  security: [{ apiKey: [] }],
  parameters: [
    {
      name: 'lender',
      in: 'query',
      description:
        'Whose sample reference the event carries: eight alphanumerics for `lender_a`, seven digits for `lender_b`. Without it ' +
        'the standard payload is sent.',
      schema: { type: 'string', enum: [...testLenders] },
    },
    ...requestIdRefs,
  ],
  responses: {
    '200': keyedAnswer(
      'The test has ended: `delivered`, your endpoint answered 2xx, or `failed`, and `data.reason` says why.',
      'TestNotificationResponse',
      TEST_ENDED_EXAMPLES,
    ),
    '202': keyedAnswer(
      'Not delivered yet; `data.status` and `data.attempt` say why. It is tried three times within a minute.',
      'TestNotificationResponse',
      TEST_PENDING_EXAMPLES,
    ),
    '400': errorResponse(
      '`lender` is unknown or another parameter is there, or the body is not empty or cannot be read.',
      requestIdHeader,
      ['INVALID_REQUEST'],
    ),
    '401': unauthenticated,
    '409': errorResponse("No webhook is registered for the key's environment.", keyedHeaders, [
      'WEBHOOK_NOT_REGISTERED',
    ]),
    '429': tooMany(
      ', or 100 tests of this month delivered or under way. Wait `Retry-After` ' +
        'seconds: for `TEST_NOTIFICATION_LIMIT_REACHED` that is the end of the month when 100 are delivered, else a minute, because ' +
        'one that is under way may fail and no longer count. The RateLimit headers are always those of the requests per minute.',
      'TEST_NOTIFICATION_LIMIT_REACHED',
    ),
    '500': ourFault,
  },
};
