import { z } from 'zod';
import type { ErrorCode } from '../../contracts/errors';
import * as examples from './partner-examples';
import { listNotificationsQuerySchema } from '../../contracts/notifications';
import {
  errorResponse,
  keyedAnswer,
  keyedHeaders,
  ourFault,
  ref,
  requestBody,
  requestIdHeader,
  requestIdRefs,
  tooMany,
  unauthenticated,
  type Json,
} from './parts';
import { ID_PATTERNS } from '../../contracts/fields';

/** The partners' own endpoints, as paths of the document. */

/** What every keyed endpoint can answer, and the codes of this one. */
function errors(own: {
  readonly invalid?: readonly [string, ...ErrorCode[]];
  readonly missing?: ErrorCode | readonly ErrorCode[];
  readonly conflict?: readonly [string, ...ErrorCode[]];
}): Json {
  const {
    invalid: [bad, ...invalid] = [
      'The request cannot be read, or has a parameter that this call does not know.',
    ],
    missing,
    conflict,
  } = own;
  const notFound: readonly ErrorCode[] = [...[missing ?? []].flat(), 'NOT_FOUND'];
  return {
    '400': errorResponse(bad, requestIdHeader, ['INVALID_REQUEST', ...invalid]),
    '401': unauthenticated,
    '404': errorResponse(
      missing === undefined
        ? 'There is no such path or method.'
        : "It does not exist, belongs to another partner or is of the other environment; or the path's id is none.",
      requestIdHeader,
      notFound,
    ),
    ...(conflict !== undefined && {
      '409': errorResponse(conflict[0], keyedHeaders, conflict.slice(1) as ErrorCode[]),
    }),
    '429': tooMany('.'),
    '500': ourFault,
  };
}

function queryParameters(schema: z.ZodObject): Json[] {
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input' }) as {
    properties?: Record<string, Json>;
  };
  return Object.entries(properties).map(([name, { description, ...own }]) => ({
    name,
    in: 'query',
    description,
    // The format says it; the pattern is a leap year's length.
    schema: own['format'] === 'date-time' ? { ...own, pattern: undefined } : own,
  }));
}

const pathParameter = (name: keyof typeof ID_PATTERNS, description: string): Json => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: { type: 'string', pattern: `^${ID_PATTERNS[name]}$` },
});

const operation = (own: Json, parameters: readonly Json[]): Json => ({
  tags: ['Notifications'],
  security: [{ apiKey: [] }],
  parameters: [...parameters, ...requestIdRefs],
  ...own,
});

const notificationId = pathParameter('notification_id', 'The notification.');

const BROKEN = [
  'The request breaks the contract, or has a field or parameter that this call does not know; `details.field` names it.',
  'MISSING_FIELD',
] as const;

export const eventPaths: Json = {
  '/v1/notifications': {
    get: operation(
      {
        operationId: 'listNotifications',
        summary: 'List notifications',
        description:
          'What you were or will be sent in the environment of the key, newest first, tests included. Filters are joined by and. ' +
          'Whatever is listed when you begin is in your pages once, whatever is added meanwhile.',
        responses: {
          '200': keyedAnswer('A page.', 'NotificationListResponse', examples.NOTIFICATION_LIST_EXAMPLES),
          ...errors({
            invalid: [
              'A filter, `limit` or the cursor is not valid, or a parameter is not known; `details.field` names it.',
            ],
          }),
        },
      },
      queryParameters(listNotificationsQuerySchema),
    ),
  },
  '/v1/notifications/{notification_id}': {
    get: operation(
      {
        operationId: 'getNotification',
        summary: 'Read a notification',
        description: 'With its payload, byte for byte, and every attempt.',
        responses: {
          '200': keyedAnswer('The notification.', 'NotificationResponse', examples.NOTIFICATION_EXAMPLES),
          ...errors({ missing: 'NOTIFICATION_NOT_FOUND' }),
        },
      },
      [notificationId],
    ),
  },
  '/v1/notifications/{notification_id}/resend': {
    post: operation(
      {
        operationId: 'resendNotification',
        summary: 'Send a notification again',
        description:
          'Sends one that has ended, or is held, once more: the same event id and body, a new timestamp and signature, and the whole ' +
          'retry ladder. Send no body. It is counted once, however often it is delivered.',
        responses: {
          '202': keyedAnswer('It is sent again.', 'ResendResponse', examples.RESEND_EXAMPLES),
          ...errors({
            invalid: [
              'The body is not empty or cannot be read, or there is a parameter that this call does not know.',
            ],
            missing: 'NOTIFICATION_NOT_FOUND',
            conflict: [
              'It cannot be sent again now; `details.reason` says why. Or there is no active endpoint.',
              'NOTIFICATION_NOT_RESENDABLE',
              'WEBHOOK_NOT_REGISTERED',
            ],
          }),
        },
      },
      [notificationId],
    ),
  },
  '/v1/notifications/recover': {
    post: operation(
      {
        operationId: 'recoverNotifications',
        summary: 'Send all that was missed again',
        description:
          'Everything `failed`, `held` or `expired` that was created in the span, which may begin at most 30 days ago, is sent again, in ' +
          'order per application, at ten a second and behind what is live. One recovery at a time in each environment. Begin with ' +
          '`dry_run: true`, which only counts.',
        requestBody: requestBody({
          schema: ref('schemas', 'RecoverRequest'),
          examples: examples.RECOVER_REQUEST_EXAMPLES,
        }),
        responses: {
          '200': keyedAnswer(
            'Of a dry run: what would be sent again.',
            'RecoverDryRunResponse',
            examples.RECOVER_DRY_RUN_EXAMPLES,
          ),
          '202': keyedAnswer('The recovery has begun.', 'RecoverResponse', examples.RECOVER_EXAMPLES),
          ...errors({
            invalid: BROKEN,
            conflict: [
              'A recovery is under way, recoveries are switched off for you (a dry run is refused, too), or there is no active endpoint.',
              'RECOVERY_UNDER_WAY',
              'RECOVERY_DISABLED',
              'WEBHOOK_NOT_REGISTERED',
            ],
          }),
        },
      },
      [],
    ),
  },
  '/v1/notifications/recoveries/{recovery_id}': {
    get: operation(
      {
        operationId: 'getRecovery',
        summary: 'Read how far a recovery has come',
        responses: {
          '200': keyedAnswer('The recovery.', 'RecoveryResponse', examples.RECOVERY_EXAMPLES),
          ...errors({ missing: 'RECOVERY_NOT_FOUND' }),
        },
      },
      [pathParameter('recovery_id', 'The recovery.')],
    ),
  },
  '/v1/credit-applications/{credit_application_id}': {
    get: operation(
      {
        operationId: 'getCreditApplication',
        summary: 'Read a credit application',
        description:
          'The state that it is in now and each of its events, for a receiver that has missed some.',
        tags: ['Applications'],
        responses: {
          '200': keyedAnswer(
            'The application.',
            'CreditApplicationResponse',
            examples.PARTNER_APPLICATION_EXAMPLES,
          ),
          ...errors({ missing: 'APPLICATION_NOT_FOUND' }),
        },
      },
      [pathParameter('credit_application_id', 'The application.')],
    ),
  },
  '/v1/sandbox/credit-applications': {
    post: operation(
      {
        operationId: 'simulateCreditApplication',
        summary: 'Open a simulated application',
        description:
          'Under a sandbox key you play the lender: this opens an application from a quote of yours, and you are sent its events ' +
          'like those of any other. At most 20 for a quote. Under a live key it does not exist.',
        tags: ['Sandbox'],
        requestBody: requestBody({
          schema: ref('schemas', 'SimulateApplicationRequest'),
          examples: examples.SIMULATE_APPLICATION_EXAMPLES,
        }),
        responses: {
          '201': keyedAnswer(
            'The application, after all events of its story.',
            'CreditApplicationResponse',
            examples.PARTNER_APPLICATION_EXAMPLES,
          ),
          ...errors({
            invalid: BROKEN,
            missing: ['QUOTE_NOT_FOUND', 'PRODUCT_NOT_QUOTED'],
            conflict: ['The quote has 20 simulated applications.', 'SIMULATION_LIMIT_REACHED'],
          }),
        },
      },
      [],
    ),
  },
  '/v1/sandbox/credit-applications/{credit_application_id}/events': {
    post: operation(
      {
        operationId: 'simulateEvent',
        summary: 'Report an event of a simulated application',
        description: 'Brings it into another state, as its lender would.',
        tags: ['Sandbox'],
        requestBody: requestBody({
          schema: ref('schemas', 'SimulateEventRequest'),
          examples: examples.SIMULATE_EVENT_EXAMPLES,
        }),
        responses: {
          '200': keyedAnswer(
            'The application in its new state.',
            'CreditApplicationResponse',
            examples.PARTNER_APPLICATION_EXAMPLES,
          ),
          ...errors({
            invalid: BROKEN,
            missing: 'APPLICATION_NOT_FOUND',
            conflict: [
              'This state cannot follow now; `details.may_follow` has those that can.',
              'EVENT_NOT_APPLICABLE',
            ],
          }),
        },
      },
      [pathParameter('credit_application_id', 'The application.')],
    ),
  },
  '/v1/webhook-endpoint': {
    get: operation(
      {
        operationId: 'getWebhookEndpoint',
        summary: 'Read where webhooks go, and how that does',
        responses: {
          '200': keyedAnswer(
            'The endpoint of the environment of the key.',
            'WebhookEndpointResponse',
            examples.WEBHOOK_ENDPOINT_EXAMPLES,
          ),
          ...errors({}),
        },
      },
      [],
    ),
  },
  '/v1/webhook-keys': {
    get: operation(
      {
        operationId: 'listWebhookKeys',
        summary: 'List the public keys of webhooks',
        description:
          'The keys that webhooks of the environment of the key are signed with (`v1a` in `webhook-signature`), for a receiver that ' +
          'keeps no shared secret. Keep the list for a day at most, and read it again when nothing verifies, once a minute at most. ' +
          'The keys are yours alone: no other partner has the same.',
        responses: {
          '200': keyedAnswer(
            'The keys, newest first.',
            'WebhookKeysResponse',
            examples.WEBHOOK_KEYS_EXAMPLES,
          ),
          ...errors({}),
        },
      },
      [],
    ),
  },
};
