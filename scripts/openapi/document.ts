import { simulateApplicationSchema, simulateEventSchema } from '../../contracts/credit-application';
import { errorSchema } from '../../contracts/errors';
import * as recovery from '../../contracts/notification-recovery';
import * as notifications from '../../contracts/notifications';
import { quoteRequestSchema } from '../../contracts/quote-request';
import { quoteResponseSchema } from '../../contracts/quote-response';
import * as webhook from '../../contracts/webhook-event';
import { componentSchemas, headers, requestIdParameters, type Json } from './parts';
import { paths } from './partner-paths';
import { webhooks } from './webhooks';

/** The schemas of bodies, as they are sent or received. */
export const SCHEMAS = [
  [quoteRequestSchema, 'input'],
  [quoteResponseSchema, 'output'],
  [notifications.testNotificationResponseSchema, 'output'],
  [notifications.notificationListSchema, 'output'],
  [notifications.notificationResponseSchema, 'output'],
  [notifications.resendResponseSchema, 'output'],
  [simulateApplicationSchema, 'input'],
  [simulateEventSchema, 'input'],
  [recovery.recoverRequestSchema, 'input'],
  [recovery.recoverDryRunSchema, 'output'],
  [recovery.recoverResponseSchema, 'output'],
  [recovery.recoveryResponseSchema, 'output'],
  [webhook.partnerApplicationSchema, 'output'],
  [webhook.webhookKeysSchema, 'output'],
  [webhook.webhookEndpointSchema, 'output'],
  [errorSchema, 'output'],
] as const;

/** Where the document is served its operator's own takes this place (PUBLIC_URL). */
const ADDRESS = 'https://quotes.example';

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
        'only; call from a server, never from a browser. New fields, and new values where a field names the values that are ' +
        'known, may appear in answers and webhooks within `/v1`: ignore those that you do not know.',
      contact: { name: 'Partner support', url: `${ADDRESS}/docs/guide` },
      license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
    },
    externalDocs: { description: 'Partner guide', url: `${ADDRESS}/docs/guide` },
    servers: [{ url: ADDRESS, description: 'The service.' }],
    tags: [
      { name: 'Quotes', description: 'What finance a shopper can be offered.' },
      {
        name: 'Notifications',
        description: 'What we tell your server of credit applications, and what came of it.',
      },
      { name: 'Applications', description: 'Where a credit application stands.' },
      { name: 'Sandbox', description: 'Applications in which you play the lender.' },
      { name: 'Webhooks', description: 'What your server receives.' },
    ],
    paths,
    webhooks,
    components: {
      schemas: componentSchemas(SCHEMAS),
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
