import { partnerOperations } from '../../api/routes/operations';
import { lenderOperations } from '../../api/routes/credit-applications';
import { errorSchema, INTERNAL_REFUSALS, internalErrorSchema, REFUSALS } from '../../contracts/errors';
import { pathsOf, schemasOf, type Listener } from './operations';
import * as parts from './parts';
import type { Json } from './portable';
import { webhooks } from './webhooks';

/** Where the headers are not those of every call with an accepted key: a request that fails before that has used none of its limit. */
const PARTNER_HEADERS: Readonly<Record<number, Json>> = {
  400: parts.requestIdHeader,
  401: parts.unauthenticatedHeaders,
  404: parts.requestIdHeader,
  429: { ...parts.keyedHeaders, ...parts.retryAfter },
  500: parts.requestIdHeader,
};

const partners: Listener = {
  operations: partnerOperations,
  refusals: REFUSALS,
  errorSchema,
  security: 'apiKey',
  headers: (status, codes) =>
    // The merchant of a quote is looked up after the key was accepted.
    (codes.includes('MERCHANT_NOT_FOUND') ? undefined : PARTNER_HEADERS[status]) ?? parts.keyedHeaders,
};

const INTERNAL_HEADERS: Readonly<Record<number, Json>> = {
  401: parts.unauthenticatedHeaders,
  429: { ...parts.requestIdHeader, ...parts.retryAfter },
  503: { ...parts.requestIdHeader, ...parts.retryAfter },
};

const lenders: Listener = {
  operations: lenderOperations,
  refusals: INTERNAL_REFUSALS,
  errorSchema: internalErrorSchema,
  security: 'serviceKey',
  headers: (status) => INTERNAL_HEADERS[status] ?? parts.requestIdHeader,
};

/** Where the document is served its operator's own takes this place (PUBLIC_URL). */
const ADDRESS = 'https://quotes.example';

/** The public contract, made from the operations that are served. */
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
    paths: pathsOf(partners),
    webhooks,
    components: {
      schemas: schemasOf(partners),
      headers: { ...parts.headers, ...parts.rateLimitHeaders },
      parameters: parts.requestIdParameters,
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

/** The contract of the internal listener. */
export function internalOpenApiDocument(): Json {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Partner Finance Quote Service: internal listener',
      version: '1.0.0',
      summary: 'Credit applications, as lender integrations open them and move them on.',
      description:
        'Plain HTTP on loopback or a private network, under service keys. A key is bound to one lender and one environment: other lenders, ' +
        'their products and applications, and quotes and applications of the other environment do not exist for it (404). Amounts are pounds as strings with two decimals. Errors ' +
        'carry a stable `error.code`; every response has an `X-Request-Id`. Every request may be sent again: it is done once. ' +
        'No personal data is taken: fields that are not named here are ignored and not stored.',
      contact: { name: 'Operators of the service' },
      license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
    },
    servers: [{ url: '/', description: 'The address this document was read from.' }],
    tags: [{ name: 'Credit applications' }],
    paths: pathsOf(lenders),
    components: {
      schemas: schemasOf(lenders),
      headers: parts.headers,
      parameters: parts.requestIdParameters,
      securitySchemes: {
        serviceKey: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'svc_…',
          description: 'A service key, of one lender and one environment.',
        },
      },
    },
  };
}
