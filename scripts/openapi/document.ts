import { errorSchema } from '../../contracts/errors';
import {
  componentSchemas,
  errorResponse,
  headers,
  keyedAnswer,
  keyedHeaders,
  ref,
  requestBody,
  requestIdHeader,
  requestIdParameters,
  requestIdRefs,
  tooMany,
  unauthenticated,
  type Json,
} from './parts';
import { sendTestNotification, webhooks } from './webhooks';
import { eventPaths } from './partner-paths';
import {
  recoverDryRunSchema,
  recoverRequestSchema,
  recoverResponseSchema,
  recoveryResponseSchema,
} from '../../contracts/notification-recovery';
import {
  notificationListSchema,
  notificationResponseSchema,
  resendResponseSchema,
  testNotificationResponseSchema,
} from '../../contracts/notifications';
import {
  partnerApplicationSchema,
  webhookEndpointSchema,
  webhookKeysSchema,
  applicationEventSchema,
  testEventSchema,
} from '../../contracts/webhook-event';
import { simulateApplicationSchema, simulateEventSchema } from '../../contracts/credit-application';
import { quoteRequestSchema } from '../../contracts/quote-request';
import { quoteResponseSchema } from '../../contracts/quote-response';
import { QUOTE_REQUEST_EXAMPLES, QUOTE_RESPONSE_EXAMPLES } from './examples';

const financeQuote: Json = {
  operationId: 'getFinanceQuote',
  summary: 'Get a finance quote',
  description:
    'Prices every credit product of the merchant for this basket, stores the quote and returns a ready-to-display summary. ' +
    'Fields are checked in the order of the request body. Show nothing when `data.summary.display` is false. ' +
    'The test merchants M000001 (standard), M000002 (not authorised), M000003 (nothing fits), M000004 (deposit raised) ' +
    'and M000005 (set-up incomplete) answer every key.',
  tags: ['Quotes'],
  security: [{ apiKey: [] }],
  parameters: requestIdRefs,
  requestBody: requestBody({ schema: ref('schemas', 'QuoteRequest'), examples: QUOTE_REQUEST_EXAMPLES }),
  responses: {
    '200': keyedAnswer('The quote. `data.products` can be empty.', 'QuoteResponse', QUOTE_RESPONSE_EXAMPLES),
    '400': errorResponse(
      'The request breaks the contract. Correct it before sending it again.',
      requestIdHeader,
      ['INVALID_REQUEST', 'MISSING_FIELD', 'INVALID_AMOUNT_FORMAT'],
    ),
    '401': unauthenticated,
    '404': errorResponse('The merchant does not exist, or does not for you.', keyedHeaders, [
      'MERCHANT_NOT_FOUND',
      'NOT_FOUND',
    ]),
    '422': errorResponse('No credit product at all is offered for this amount.', keyedHeaders, [
      'AMOUNT_TOO_LOW',
      'AMOUNT_TOO_HIGH',
    ]),
    '429': tooMany(', or too many from your address without a valid key.'),
    '500': errorResponse('A fault on our side, or a merchant whose set-up is incomplete.', requestIdHeader, [
      'INTERNAL_SERVER_ERROR',
      'MERCHANT_CONFIGURATION_INCOMPLETE',
    ]),
  },
};

/** The public contract, made from the schemas that requests are checked with. */
export function openApiDocument(): Json {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Partner Finance Quote Service',
      version: '1.0.0',
      summary: 'Finance offers for the shoppers of UK merchants.',
      description:
        'Amounts are pounds as strings with two decimals. Errors carry a stable `error.code`. Every response has an ' +
        '`X-Request-Id`; every response to a call whose key was accepted has the rate-limit headers in both forms. HTTPS ' +
        'only; call from a server, never from a browser. New fields, new `products_notice.code` values and new error ' +
        'details may appear within `/v1`.',
      contact: { name: 'Partner support' },
      license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
    },
    externalDocs: { description: 'Partner guide', url: '/docs/guide' },
    servers: [{ url: '/', description: 'The address this document was read from.' }],
    tags: [
      { name: 'Quotes', description: 'What finance a shopper can be offered.' },
      {
        name: 'Notifications',
        description: 'What we tell your server of credit applications, and what came of it.',
      },
      { name: 'Applications', description: 'Where a credit application stands.' },
      { name: 'Sandbox', description: 'Applications in which you play the lender.' },
    ],
    paths: {
      '/v1/finance-quote': { post: financeQuote },
      '/v1/notifications/test': { post: sendTestNotification },
      ...eventPaths,
    },
    webhooks,
    components: {
      schemas: componentSchemas([
        [quoteRequestSchema, 'input'],
        [quoteResponseSchema, 'output'],
        [testNotificationResponseSchema, 'output'],
        [notificationListSchema, 'output'],
        [notificationResponseSchema, 'output'],
        [resendResponseSchema, 'output'],
        [simulateApplicationSchema, 'input'],
        [simulateEventSchema, 'input'],
        [recoverRequestSchema, 'input'],
        [recoverDryRunSchema, 'output'],
        [recoverResponseSchema, 'output'],
        [recoveryResponseSchema, 'output'],
        [partnerApplicationSchema, 'output'],
        [webhookKeysSchema, 'output'],
        [webhookEndpointSchema, 'output'],
        [applicationEventSchema, 'output'],
        [testEventSchema, 'output'],
        [errorSchema, 'output'],
      ]),
      headers,
      parameters: requestIdParameters,
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'sk_test_… or sk_live_…',
          description: 'Sandbox keys begin `sk_test_`, live keys `sk_live_`.',
        },
      },
    },
  };
}
