import {
  applicationByLinkSchema,
  applicationByParametersSchema,
  applicationResponseSchema,
  createdApplicationSchema,
  lenderEventRequestSchema,
  lenderEventResponseSchema,
} from '../../contracts/credit-application';
import { internalErrorSchema, type InternalErrorCode } from '../../contracts/errors';
import {
  componentSchemas,
  headers,
  keyedHeaders,
  ref,
  requestBody,
  requestIdHeader,
  requestIdParameters,
  requestIdRefs,
  unauthenticatedHeaders,
  type Json,
} from './parts';

/** When each `error.code` is sent. */
const CAUSES: Readonly<Record<InternalErrorCode, string>> = {
  INVALID_REQUEST:
    'a field, the link, the body (which must not be compressed) or the protocol is not as it must be',
  MISSING_FIELD: 'required fields are absent or null',
  INVALID_AMOUNT_FORMAT: 'an amount has more than two decimal places',
  QUOTE_ID_MISMATCH: '`service_quote_id` and `quote_id` are both there and differ',
  INVALID_LENDER_REFERENCE: "the reference is not of the lender's form",
  UNAUTHENTICATED: 'the service key is missing, unknown, expired, inactive or revoked',
  NOT_FOUND: 'there is no such path or method',
  LENDER_NOT_FOUND: 'there is no such lender for this key',
  QUOTE_NOT_FOUND: 'there is no such quote for this key, or its month has been dropped',
  PRODUCT_NOT_QUOTED:
    "the quote offered no such product of the key's lender; without a product, none of that lender at all",
  APPLICATION_NOT_FOUND: 'there is no such application for this key',
  APPLICATION_EXISTS: "the lender's reference stands for another application of this environment",
  LENDER_EVENT_EXISTS: "the lender's event id stands for another event",
  AMOUNTS_NOT_QUOTED: 'the amounts are not those that were quoted',
  MERCHANT_REFERENCE_MISMATCH: "the reference is not the quote's",
  RATE_LIMIT_EXCEEDED:
    'more than 300 calls in a minute from your address without a valid service key; a call with one is never refused for it',
  INTERNAL_SERVER_ERROR: 'a fault on our side; ask again, it is safe',
};

const answer = (description: string, schema: string): Json => ({
  description,
  headers: requestIdHeader,
  content: { 'application/json': { schema: ref('schemas', schema) } },
});

/** Refusals of a status, with what each of their codes means. */
const refusals = (...codes: readonly InternalErrorCode[]): Json =>
  answer(codes.map((code) => `\`${code}\`: ${CAUSES[code]}.`).join(' '), 'Error');

const retryAfter = {
  ...keyedHeaders,
  ...unauthenticatedHeaders,
  'Retry-After': ref('headers', 'RetryAfter'),
};

/** What every call can be answered. */
const everywhere: Json = {
  '401': { ...refusals('UNAUTHENTICATED'), headers: unauthenticatedHeaders },
  '429': { ...refusals('RATE_LIMIT_EXCEEDED'), headers: retryAfter },
  '500': refusals('INTERNAL_SERVER_ERROR'),
};

const common: Json = { tags: ['Credit applications'], security: [{ serviceKey: [] }] };

const createCreditApplication: Json = {
  ...common,
  operationId: 'createCreditApplication',
  summary: 'Open a credit application',
  description:
    'From a finance link, whole or by its parameters. What is applied for must have been quoted: with a product, that product of ' +
    'the lender for these amounts; without one, the amounts of any product of the lender that fitted or, when one fitted, of the ' +
    'summary’s link. The same lender and ' +
    'reference again, with the same content, answers the same. The partner is told (`credit_application.created`).',
  parameters: requestIdRefs,
  requestBody: requestBody({
    schema: { anyOf: [ref('schemas', 'ApplicationByLink'), ref('schemas', 'ApplicationByParameters')] },
  }),
  responses: {
    '200': answer('It is open, now or since an earlier request.', 'CreatedApplication'),
    '400': refusals(
      'INVALID_REQUEST',
      'MISSING_FIELD',
      'INVALID_AMOUNT_FORMAT',
      'QUOTE_ID_MISMATCH',
      'INVALID_LENDER_REFERENCE',
    ),
    '404': refusals('LENDER_NOT_FOUND', 'QUOTE_NOT_FOUND', 'PRODUCT_NOT_QUOTED', 'NOT_FOUND'),
    '409': refusals('APPLICATION_EXISTS'),
    '422': refusals('AMOUNTS_NOT_QUOTED', 'MERCHANT_REFERENCE_MISMATCH'),
    ...everywhere,
  },
};

const applicationParameters = [ref('parameters', 'ApplicationId'), ...requestIdRefs];

const recordLenderEvent: Json = {
  ...common,
  operationId: 'recordLenderEvent',
  summary: "Record a lender's status",
  description:
    'The same `lender_event_id` again, with the same content, answers the same. Every event is stored; `outcome` says what came of ' +
    'it. Send them as they come: steps may be left out, and one that comes early waits for what is missing, for ten minutes unless ' +
    'configured otherwise. Then it is applied without.',
  parameters: applicationParameters,
  requestBody: requestBody({ schema: ref('schemas', 'LenderEventRequest') }),
  responses: {
    '200': answer('It is stored, now or since an earlier request.', 'LenderEventResponse'),
    '400': refusals('INVALID_REQUEST', 'MISSING_FIELD'),
    '404': refusals('APPLICATION_NOT_FOUND', 'NOT_FOUND'),
    '409': refusals('LENDER_EVENT_EXISTS'),
    ...everywhere,
  },
};

const getCreditApplication: Json = {
  ...common,
  operationId: 'getCreditApplication',
  summary: 'Read a credit application with its history',
  parameters: applicationParameters,
  responses: {
    '200': answer(
      'The application, all that its lender told, and all that its partner is told.',
      'ApplicationResponse',
    ),
    '400': refusals('INVALID_REQUEST'),
    '404': refusals('APPLICATION_NOT_FOUND', 'NOT_FOUND'),
    ...everywhere,
  },
};

/** The contract of the internal listener as an OpenAPI 3.1 document, made from the schemas that requests are checked with. */
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
      license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
    },
    servers: [{ url: '/', description: 'The address this document was read from.' }],
    tags: [{ name: 'Credit applications' }],
    paths: {
      '/internal/v1/credit-applications': { post: createCreditApplication },
      '/internal/v1/credit-applications/{credit_application_id}': { get: getCreditApplication },
      '/internal/v1/credit-applications/{credit_application_id}/lender-events': { post: recordLenderEvent },
    },
    components: {
      schemas: componentSchemas([
        [applicationByLinkSchema, 'input'],
        [applicationByParametersSchema, 'input'],
        [lenderEventRequestSchema, 'input'],
        [createdApplicationSchema, 'output'],
        [lenderEventResponseSchema, 'output'],
        [applicationResponseSchema, 'output'],
        [internalErrorSchema, 'output'],
      ]),
      headers,
      parameters: {
        ...requestIdParameters,
        ApplicationId: {
          name: 'credit_application_id',
          in: 'path',
          required: true,
          schema: { type: 'string', examples: ['app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'] },
        },
      },
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
