import { createHmac, timingSafeEqual } from 'node:crypto';
import {
  listNotificationsQuerySchema,
  notificationExamples,
  notificationListExamples,
  notificationListSchema,
  notificationReasons,
  notificationResponseSchema,
  resendExamples,
  resendResponseSchema,
  type ListNotificationsQuery,
  type NotificationBody,
  type NotificationItem,
} from '../../contracts/notifications';
import { createdMs, lowestNotificationId } from '../../db/notifications/notification';
import type { Listed, ListedAttempt, PartnerNotification } from '../../db/notifications/partner';
import { Refused } from '../../db/refused';
import type { Tenant } from '../../domain/tenant';
import { answerer, toTimestamp } from '../answers';
import type { Caller } from '../checks';
import { invalidField, refused, type ApiError } from '../errors';
import { operation } from '../operation';
import type { WithQueries } from '../queries';
import { shownReason } from './send-test-notification';

const END = lowestNotificationId(2 ** 48 - 1);

const listNotifications = operation({
  call: 'GET /v1/notifications',
  id: 'listNotifications',
  tag: 'Notifications',
  summary: 'List notifications',
  description:
    'What you were or will be sent in the environment of the key, newest first, tests included. Filters are joined by and. ' +
    'Whatever is listed when you begin is in your pages once, whatever is added meanwhile.',
  query: listNotificationsQuerySchema,
  answers: { 200: ['A page.', notificationListSchema, notificationListExamples] },
  wrong: [{ limit: '101' }],
  handler: ({ queries }: WithQueries) => {
    const sendAnswer = answerer(notificationListSchema);
    const cursors = createCursors(queries.cursorSecret);
    return async ({ caller, query }, reply) => {
      const scope = scopeOf(caller, query);
      const { notifications, next } = await queries.listNotifications({
        partnerId: caller.partnerId,
        environment: caller.environment,
        eventId: query.event_id,
        applicationId: query.credit_application_id,
        merchantReference: query.merchant_reference,
        status: query.status,
        eventType: query.event_type,
        sequence: query.sequence,
        ...(await spanOf(query, scope, cursors)),
        limit: query.limit,
      });
      return sendAnswer(reply, {
        notifications: notifications.map(notificationToWire),
        next_cursor: next && (await cursors.seal(next.slice('ntf_'.length), scope)),
      });
    };
  },
});

async function spanOf(query: ListNotificationsQuery, scope: string, cursors: Cursors) {
  const { created_from: from, created_to: to, cursor } = query;
  if (from !== undefined && to !== undefined && from >= to)
    throw invalidField('created_to', 'must lie after created_from.');
  const fromId = from === undefined ? 'ntf_' : lowestNotificationId(from.getTime());
  if (cursor === undefined)
    return { fromId, beforeId: to === undefined ? END : lowestNotificationId(to.getTime()) };
  const position = await cursors.open(cursor, scope);
  if (position === null) throw invalidField('cursor', 'is not the next_cursor of a page with these filters.');
  return { fromId, beforeId: `ntf_${position}` };
}

/**
 * What a cursor is valid for: partner, environment and filters must be the same for the next page. The
 * validated query has its filters in the order of the schema.
 */
function scopeOf({ partnerId, environment }: Caller, query: ListNotificationsQuery): string {
  const { limit: _limit, cursor: _cursor, ...filters } = query;
  return JSON.stringify([partnerId, environment, filters]);
}

const MAC_BYTES = 16;
const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/;

type Cursors = ReturnType<typeof createCursors>;

/**
 * Cursors of pages: a position (a ULID) and an HMAC-SHA256 over it and its scope, in base64url, so that
 * no partner can make one or use another's.
 * @param readSecret called once, and again after a failure
 */
function createCursors(readSecret: () => Promise<Buffer>) {
  let secret: Promise<Buffer> | null = null;
  const secretOnce = () =>
    (secret ??= readSecret().catch((error: unknown) => {
      secret = null;
      throw error;
    }));
  async function macOf(position: string, scope: string): Promise<Buffer> {
    const hmac = createHmac('sha256', await secretOnce()).update(position + scope);
    return hmac.digest().subarray(0, MAC_BYTES);
  }
  return {
    async seal(position: string, scope: string): Promise<string> {
      const parts = [Buffer.from(position, 'latin1'), await macOf(position, scope)];
      return Buffer.concat(parts).toString('base64url');
    },
    async open(cursor: string, scope: string): Promise<string | null> {
      const bytes = Buffer.from(cursor, 'base64url');
      const position = bytes.toString('latin1', 0, 26);
      const canonical = bytes.length === 26 + MAC_BYTES && bytes.toString('base64url') === cursor;
      if (!canonical || !ULID.test(position)) return null;
      return timingSafeEqual(bytes.subarray(26), await macOf(position, scope)) ? position : null;
    },
  };
}

const getNotification = operation({
  call: 'GET /v1/notifications/{notification_id}',
  id: 'getNotification',
  tag: 'Notifications',
  summary: 'Read a notification',
  description: 'With its payload, byte for byte, and every attempt.',
  answers: { 200: ['The notification.', notificationResponseSchema, notificationExamples] },
  codes: ['NOTIFICATION_NOT_FOUND'],
  handler: ({ queries }: WithQueries) => {
    const sendAnswer = answerer(notificationResponseSchema);
    return async ({ params, caller }, reply) => {
      const found = await queries.findNotification(params.notification_id, caller);
      if (found === null) throw refused('NOTIFICATION_NOT_FOUND');
      return sendAnswer(reply, notificationWithLog(found));
    };
  },
});

const resendNotification = operation({
  call: 'POST /v1/notifications/{notification_id}/resend',
  id: 'resendNotification',
  tag: 'Notifications',
  summary: 'Send a notification again',
  description:
    'Sends one that has ended, or is held, once more: the same event id and body, a new timestamp and signature, and the whole ' +
    'retry ladder. Send no body. It is counted once, however often it is delivered.',
  answers: { 202: ['It is sent again.', resendResponseSchema, resendExamples] },
  codes: ['NOTIFICATION_NOT_FOUND', 'NOTIFICATION_NOT_RESENDABLE', 'WEBHOOK_NOT_REGISTERED'],
  handler: ({ queries }: WithQueries) => {
    const sendAnswer = answerer(resendResponseSchema);
    return async ({ params: { notification_id }, caller }, reply) => {
      const { keyId, partnerId, environment } = caller;
      const by = { owner: { partnerId, environment }, keyId };
      const { eventId } = await queries.resendNotification(notification_id, by).catch((error: unknown) => {
        throw error instanceof Refused ? refusalOf(error, environment) : error;
      });
      return sendAnswer(reply, { notification_id, event_id: eventId, status: 'pending' }, 202);
    };
  },
});

function refusalOf({ kind, detail }: Refused, environment: Tenant['environment']): ApiError {
  if (kind === 'not_found') return refused('NOTIFICATION_NOT_FOUND');
  if (detail === 'no_endpoint') return refused('WEBHOOK_NOT_REGISTERED', environment);
  const known = detail === 'test' || detail === 'payload_removed' ? detail : 'under_way';
  return refused('NOTIFICATION_NOT_RESENDABLE', known);
}

export const notificationOperations = [listNotifications, getNotification, resendNotification];

const timestampOrNull = (ms: number | null) => (ms === null ? null : toTimestamp(ms));

/** `created_at` is read from the id, because filters and pages follow the id too. */
function notificationToWire(one: Listed): NotificationItem {
  const hasReason = one.status !== 'delivered' && one.endReason !== null;
  return {
    notification_id: one.notificationId,
    event_id: one.eventId,
    event_type: one.eventType,
    status: one.status,
    reason: hasReason ? shownReason(one.endReason, notificationReasons) : null,
    created_at: toTimestamp(createdMs(one.notificationId)),
    credit_application_id: one.applicationId,
    merchant_reference: one.merchantReference,
    sequence: one.sequence,
    attempts: one.attempts,
    last_attempt: one.lastAttempt && {
      at: toTimestamp(one.lastAttempt.atMs),
      ...attemptToWire(one.lastAttempt),
    },
    next_attempt_at: timestampOrNull(one.nextAttemptMs),
    delivered_at: timestampOrNull(one.deliveredMs),
  };
}

const notificationWithLog = (one: PartnerNotification): NotificationBody['data'] => ({
  ...notificationToWire(one),
  payload: one.body === '' ? null : one.body,
  attempt_log: one.log.map((attempt) => ({
    number: attempt.number,
    at: toTimestamp(attempt.atMs),
    finished_at: timestampOrNull(attempt.finishedMs),
    ...attemptToWire(attempt),
  })),
});

const attemptToWire = ({ outcome, httpStatus, failure, durationMs }: ListedAttempt) => ({
  outcome,
  http_status: httpStatus,
  failure,
  duration_ms: durationMs,
});
