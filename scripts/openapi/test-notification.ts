import { testLenders } from '../../contracts/webhook-event';
import { TEST_ENDED_EXAMPLES, TEST_PENDING_EXAMPLES } from './examples';
import {
  errorResponse,
  keyedAnswer,
  keyedHeaders,
  ourFault,
  requestIdHeader,
  requestIdRefs,
  tooMany,
  unauthenticated,
  type Json,
} from './parts';

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
