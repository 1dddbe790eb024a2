import { z } from 'zod';
import type { ErrorCode } from '../../contracts/errors';
import { ID_PATTERNS } from '../../contracts/fields';
import { APPLICATION_STATES, STORIES } from '../../domain/application-states';
import { listNotificationsQuerySchema, testNotificationQuerySchema } from '../../contracts/notifications';
import { refusals, type RefusalExamples, type RefusalTexts, type Refused } from './errors';
import { EXAMPLES } from './partner-examples';
import { content, keyedHeaders, pathsOf, requestBody, requestIdRefs, type Json } from './parts';
import { portable } from './portable';

function queryParameters(schema: z.ZodObject): Json[] {
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input' }) as {
    properties?: Record<string, Json>;
  };
  return Object.entries(properties).map(([name, { description, ...own }]) => ({
    name,
    in: 'query',
    description,
    schema: portable(own, 'input'),
  }));
}

const PATH_PARAMETERS = {
  notification_id: 'The notification.',
  recovery_id: 'The recovery.',
  credit_application_id: 'The application.',
} as const;

const pathParameters = (path: string): Json[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, matched]) => {
    const name = matched as keyof typeof PATH_PARAMETERS;
    const schema = { type: 'string', pattern: `^${ID_PATTERNS[name]}$` };
    return { name, in: 'path', required: true, description: PATH_PARAMETERS[name], schema };
  });

type Schema = keyof typeof EXAMPLES;

interface Operation {
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  /** In the file they stand before the rest, as when it was first written. */
  readonly titleFirst?: true;
  /** Default: Notifications. */
  readonly tag?: 'Quotes' | 'Applications' | 'Sandbox';
  readonly query?: z.ZodObject;
  readonly body?: Schema;
  /** Its successes by status. Without names, an answer is shown with all examples of its schema. */
  readonly answers: Readonly<Record<number, readonly [description: string, Schema, ...examples: string[]]>>;
  /** Codes besides those of every call. */
  readonly codes?: readonly ErrorCode[];
  readonly says?: RefusalTexts;
  readonly shows?: RefusalExamples;
}

function operation(path: string, own: Operation): Json {
  const { id: operationId, summary, description, titleFirst, tag = 'Notifications', query, body } = own;
  const title = { operationId, summary, ...(description !== undefined && { description }) };
  const parameters = [...(query ? queryParameters(query) : []), ...pathParameters(path), ...requestIdRefs];
  const call = { tags: [tag], security: [{ apiKey: [] }], parameters };
  const answers = Object.entries(own.answers).map(([status, [what, schema, ...names]]) => {
    const all = Object.entries(EXAMPLES[schema]);
    const examples = names.length === 0 ? all : all.filter(([name]) => names.includes(name));
    const answer = content(schema, Object.fromEntries(examples));
    return [status, { description: what, headers: keyedHeaders, content: answer }] as const;
  });
  return {
    ...(titleFirst ? { ...title, ...call } : { ...call, ...title }),
    ...(body !== undefined && { requestBody: requestBody(body, EXAMPLES[body]) }),
    responses: {
      ...Object.fromEntries(answers),
      ...refusals(own.codes ?? [], own.says ?? {}, own.shows ?? {}),
    },
  };
}

const missing = (field: string) => [`${field} is required.`, { field, fields: [field] }] satisfies Refused;

const BROKEN =
  'The request breaks the contract, or has a field or parameter that this call does not know; `details.field` names it.';

export const paths = pathsOf<Operation>(operation, {
  'post /v1/finance-quote': {
    titleFirst: true,
    id: 'getFinanceQuote',
    summary: 'Get a finance quote',
    description:
      'Prices every credit product of the merchant for this basket, stores the quote and returns a ready-to-display summary. ' +
      'Fields are checked in the order of the request body. Show nothing when `data.summary.display` is false. ' +
      'The test merchants M000001 (standard), M000002 (not authorised), M000003 (nothing fits), M000004 (deposit raised) ' +
      'and M000005 (set-up incomplete) answer every key.',
    tag: 'Quotes',
    body: 'QuoteRequest',
    answers: { 200: ['The quote. `data.products` can be empty.', 'QuoteResponse'] },
    codes: [
      'MISSING_FIELD',
      'INVALID_AMOUNT_FORMAT',
      'MERCHANT_NOT_FOUND',
      'AMOUNT_TOO_LOW',
      'AMOUNT_TOO_HIGH',
      'MERCHANT_CONFIGURATION_INCOMPLETE',
    ],
    says: {
      400: 'The request breaks the contract. Correct it before sending it again.',
      404: 'The merchant does not exist, or does not for you.',
      422: 'No credit product at all is offered for this amount.',
      429: 'More than 100 requests per minute with this key, or too many from your address without a valid key.',
      500: 'A fault on our side, or a merchant whose set-up is incomplete.',
    },
    shows: {
      INVALID_REQUEST: [
        'merchant_finance_url must be a full URL that begins with https://.',
        { field: 'merchant_finance_url' },
      ],
    },
  },
  'post /v1/notifications/test': {
    titleFirst: true,
    id: 'sendTestNotification',
    summary: 'Send a test notification',
    description:
      'Sends a signed `credit_application.test` event to the endpoint that is registered for the environment of the key, and ' +
      'waits up to 10 seconds for what comes of the first attempt. Send no body. 100 deliveries are allowed per environment ' +
      'and month (UTC); one that is under way counts until it has ended. Set your timeout to 15 seconds or more.',
    query: testNotificationQuerySchema,
    answers: {
      200: [
        'The test has ended: `delivered`, your endpoint answered 2xx, or `failed`, and `data.reason` says why.',
        'TestNotificationResponse',
        'delivered',
        'failed',
      ],
      202: [
        'Not delivered yet; `data.status` and `data.attempt` say why. It is tried three times within a minute.',
        'TestNotificationResponse',
        'retrying',
        'unreachable',
        'queued',
      ],
    },
    codes: ['WEBHOOK_NOT_REGISTERED', 'TEST_NOTIFICATION_LIMIT_REACHED'],
    says: {
      400: '`lender` is unknown or another parameter is there, or the body is not empty or cannot be read.',
      404: null,
      409: "No webhook is registered for the key's environment.",
      429:
        'More than 100 requests per minute with this key, or 100 tests of this month delivered or under way. Wait `Retry-After` ' +
        'seconds: for `TEST_NOTIFICATION_LIMIT_REACHED` that is the end of the month when 100 are delivered, else a minute, because ' +
        'one that is under way may fail and no longer count. The RateLimit headers are always those of the requests per minute.',
    },
    shows: { INVALID_REQUEST: ['lender must be lender_a or lender_b.', { field: 'lender' }] },
  },
  'get /v1/notifications': {
    id: 'listNotifications',
    summary: 'List notifications',
    description:
      'What you were or will be sent in the environment of the key, newest first, tests included. Filters are joined by and. ' +
      'Whatever is listed when you begin is in your pages once, whatever is added meanwhile.',
    answers: { 200: ['A page.', 'NotificationListResponse'] },
    query: listNotificationsQuerySchema,
    says: {
      400: 'A filter, `limit` or the cursor is not valid, or a parameter is not known; `details.field` names it.',
    },
    shows: { INVALID_REQUEST: ['limit must be a whole number from 1 to 100.', { field: 'limit' }] },
  },
  'get /v1/notifications/{notification_id}': {
    id: 'getNotification',
    summary: 'Read a notification',
    description: 'With its payload, byte for byte, and every attempt.',
    answers: { 200: ['The notification.', 'NotificationResponse'] },
    codes: ['NOTIFICATION_NOT_FOUND'],
  },
  'post /v1/notifications/{notification_id}/resend': {
    id: 'resendNotification',
    summary: 'Send a notification again',
    description:
      'Sends one that has ended, or is held, once more: the same event id and body, a new timestamp and signature, and the whole ' +
      'retry ladder. Send no body. It is counted once, however often it is delivered.',
    answers: { 202: ['It is sent again.', 'ResendResponse'] },
    codes: ['NOTIFICATION_NOT_FOUND', 'NOTIFICATION_NOT_RESENDABLE', 'WEBHOOK_NOT_REGISTERED'],
    says: {
      400: 'The body is not empty or cannot be read, or there is a parameter that this call does not know.',
      409: 'It cannot be sent again now; `details.reason` says why. Or there is no active endpoint.',
    },
    shows: { INVALID_REQUEST: ['The body must be empty.'] },
  },
  'post /v1/notifications/recover': {
    id: 'recoverNotifications',
    summary: 'Send all that was missed again',
    description:
      'Everything `failed`, `held` or `expired` that was created in the span, which may begin at most 30 days ago, is sent again, in ' +
      'order per application, at ten a second and behind what is live. One recovery at a time in each environment. Begin with ' +
      '`dry_run: true`, which only counts.',
    body: 'RecoverRequest',
    answers: {
      200: ['Of a dry run: what would be sent again.', 'RecoverDryRunResponse'],
      202: ['The recovery has begun.', 'RecoverResponse'],
    },
    codes: ['MISSING_FIELD', 'RECOVERY_UNDER_WAY', 'RECOVERY_DISABLED', 'WEBHOOK_NOT_REGISTERED'],
    says: {
      400: BROKEN,
      409: 'A recovery is under way, another call of yours is being counted, recoveries are switched off for you (a dry run is refused, too), or there is no active endpoint.',
    },
    shows: {
      INVALID_REQUEST: [
        'created_from must be a moment of RFC 3339, such as 2026-11-21T12:00:00Z.',
        { field: 'created_from' },
      ],
      MISSING_FIELD: missing('created_to'),
    },
  },
  'get /v1/notifications/recoveries/{recovery_id}': {
    id: 'getRecovery',
    summary: 'Read how far a recovery has come',
    description: 'How many of the span have been sent again so far, and what came of them.',
    answers: { 200: ['The recovery.', 'RecoveryResponse'] },
    codes: ['RECOVERY_NOT_FOUND'],
  },
  'get /v1/credit-applications/{credit_application_id}': {
    id: 'getCreditApplication',
    summary: 'Read a credit application',
    description: 'The state that it is in now and each of its events, for a receiver that has missed some.',
    tag: 'Applications',
    answers: { 200: ['The application.', 'CreditApplicationResponse'] },
    codes: ['APPLICATION_NOT_FOUND'],
  },
  'post /v1/sandbox/credit-applications': {
    id: 'simulateCreditApplication',
    summary: 'Open a simulated application',
    description:
      'Under a sandbox key you play the lender: this opens an application from a quote of yours, and you are sent its events ' +
      'like those of any other. At most 20 for a quote. Under a live key it does not exist.',
    tag: 'Sandbox',
    body: 'SimulateApplicationRequest',
    answers: { 201: ['The application, after all events of its story.', 'CreditApplicationResponse'] },
    codes: ['MISSING_FIELD', 'QUOTE_NOT_FOUND', 'PRODUCT_NOT_QUOTED', 'SIMULATION_LIMIT_REACHED'],
    says: {
      400: BROKEN,
      409: 'The quote has 20 simulated applications, or yours have every reference of this lender.',
    },
    shows: {
      INVALID_REQUEST: [`story must be one of ${Object.keys(STORIES).join(', ')}.`, { field: 'story' }],
      MISSING_FIELD: missing('service_quote_id'),
    },
  },
  'post /v1/sandbox/credit-applications/{credit_application_id}/events': {
    id: 'simulateEvent',
    summary: 'Report an event of a simulated application',
    description: 'Brings it into another state, as its lender would.',
    tag: 'Sandbox',
    body: 'SimulateEventRequest',
    answers: { 200: ['The application in its new state.', 'CreditApplicationResponse'] },
    codes: ['MISSING_FIELD', 'APPLICATION_NOT_FOUND', 'EVENT_NOT_APPLICABLE', 'SIMULATION_LIMIT_REACHED'],
    says: {
      400: BROKEN,
      409: 'This state cannot follow now; `details.may_follow` has those that can. Or the application has 100 events.',
    },
    shows: {
      INVALID_REQUEST: [`status must be one of ${APPLICATION_STATES.join(', ')}.`, { field: 'status' }],
      MISSING_FIELD: missing('status'),
    },
  },
  'get /v1/webhook-endpoint': {
    id: 'getWebhookEndpoint',
    summary: 'Read where webhooks go, and how that does',
    description:
      'Whether it is active, since when it fails, and how many notifications are held until it is active again.',
    answers: { 200: ['The endpoint of the environment of the key.', 'WebhookEndpointResponse'] },
  },
  'get /v1/webhook-keys': {
    id: 'listWebhookKeys',
    summary: 'List the public keys of webhooks',
    description:
      'The keys that webhooks of the environment of the key are signed with (`v1a` in `webhook-signature`), for a receiver that ' +
      'keeps no shared secret. Keep the list for a day at most, and read it again when nothing verifies, once a minute at most. ' +
      'The keys are yours alone: no other partner has the same.',
    answers: { 200: ['The keys, newest first.', 'WebhookKeysResponse'] },
  },
});
