import * as application from '../../contracts/credit-application';
import { INTERNAL_ERROR_STATUSES, internalErrorSchema, type InternalErrorCode } from '../../contracts/errors';
import * as parts from './parts';
import { ref, type Json } from './parts';

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

/** Headers that differ from those of every answer. */
const HEADERS: Readonly<Record<number, Json>> = {
  401: parts.unauthenticatedHeaders,
  429: { ...parts.keyedHeaders, ...parts.unauthenticatedHeaders, ...parts.retryAfter },
};

interface Operation {
  readonly title: { readonly operationId: string; readonly summary: string; readonly description?: string };
  readonly body?: string | Json;
  readonly done: readonly [description: string, schema: string];
  /** Codes besides those of every call. */
  readonly codes: readonly InternalErrorCode[];
}

function operation(path: string, { title, body, done, codes }: Operation): Json {
  const answer = (status: number, description: string, schema: string): Json => ({
    description,
    headers: HEADERS[status] ?? parts.requestIdHeader,
    content: parts.content(schema),
  });
  return {
    tags: ['Credit applications'],
    security: [{ serviceKey: [] }],
    ...title,
    parameters: [...(path.includes('{') ? [ref('parameters', 'ApplicationId')] : []), ...parts.requestIdRefs],
    ...(body !== undefined && { requestBody: parts.requestBody(body) }),
    responses: {
      '200': answer(200, ...done),
      ...parts.byStatus(INTERNAL_ERROR_STATUSES, codes, (status, own) =>
        answer(status, own.map((code) => `\`${code}\`: ${CAUSES[code]}.`).join(' '), 'ApiError'),
      ),
    },
  };
}

const paths = parts.pathsOf<Operation>(operation, {
  'post /internal/v1/credit-applications': {
    title: {
      operationId: 'createCreditApplication',
      summary: 'Open a credit application',
      description:
        'From a finance link, whole or by its parameters. What is applied for must have been quoted: with a product, that product of ' +
        'the lender for these amounts; without one, the amounts of any product of the lender that fitted or, when one fitted, of the ' +
        'summary’s link. The same lender and ' +
        'reference again, with the same content, answers the same. The partner is told (`credit_application.created`).',
    },
    body: { anyOf: [ref('schemas', 'ApplicationByLink'), ref('schemas', 'ApplicationByParameters')] },
    done: ['It is open, now or since an earlier request.', 'CreatedApplication'],
    codes: [
      'MISSING_FIELD',
      'INVALID_AMOUNT_FORMAT',
      'QUOTE_ID_MISMATCH',
      'INVALID_LENDER_REFERENCE',
      'LENDER_NOT_FOUND',
      'QUOTE_NOT_FOUND',
      'PRODUCT_NOT_QUOTED',
      'APPLICATION_EXISTS',
      'AMOUNTS_NOT_QUOTED',
      'MERCHANT_REFERENCE_MISMATCH',
    ],
  },
  'get /internal/v1/credit-applications/{credit_application_id}': {
    title: {
      operationId: 'getCreditApplication',
      summary: 'Read a credit application with its history',
      description:
        'For an integration that has lost an answer of ours, or is asked where an application stands.',
    },
    done: [
      'The application, all that its lender told, and all that its partner is told.',
      'ApplicationResponse',
    ],
    codes: ['APPLICATION_NOT_FOUND'],
  },
  'post /internal/v1/credit-applications/{credit_application_id}/lender-events': {
    title: {
      operationId: 'recordLenderEvent',
      summary: "Record a lender's status",
      description:
        'The same `lender_event_id` again, with the same content, answers the same. Every event is stored; `outcome` says what came of ' +
        'it. Send them as they come: steps may be left out, and one that comes early waits for what is missing, for ten minutes unless ' +
        'configured otherwise. Then it is applied without.',
    },
    body: 'LenderEventRequest',
    done: ['It is stored, now or since an earlier request.', 'LenderEventResponse'],
    codes: ['MISSING_FIELD', 'APPLICATION_NOT_FOUND', 'LENDER_EVENT_EXISTS'],
  },
});

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
      contact: { name: 'Operators of the service' },
      license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
    },
    servers: [{ url: '/', description: 'The address this document was read from.' }],
    tags: [{ name: 'Credit applications' }],
    paths,
    components: {
      schemas: parts.componentSchemas([
        [application.applicationByLinkSchema, 'input'],
        [application.applicationByParametersSchema, 'input'],
        [application.lenderEventRequestSchema, 'input'],
        [application.createdApplicationSchema, 'output'],
        [application.lenderEventResponseSchema, 'output'],
        [application.applicationResponseSchema, 'output'],
        [internalErrorSchema, 'output'],
      ]),
      headers: parts.headers,
      parameters: {
        ...parts.requestIdParameters,
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
