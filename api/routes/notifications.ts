import type { FastifyInstance } from 'fastify';
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { ErrorDetails } from '../../contracts/errors';
import { ID_PATTERNS } from '../../contracts/fields';
import {
  notificationListSchema,
  readListQuery,
  type ListNotificationsQuery,
  notificationResponseSchema,
  resendResponseSchema,
  notificationReasons,
  type NotificationBody,
  type NotificationItem,
} from '../../contracts/notifications';
import { lowestNotificationId, createdMs } from '../../db/notifications/notification';
import type {
  Page,
  PageWanted,
  PartnerNotification,
  Listed,
  ListedAttempt,
} from '../../db/notifications/partner';
import { Refused } from '../../db/refused';
import type { Tenant } from '../../domain/tenant';
import type { Caller } from '../checks';
import { ApiError, notRegistered } from '../errors';
import { answerer } from '../answers';
import { shownReason } from './send-test-notification';
import { idRoute } from '../observe';

export interface ListNotificationsDeps {
  readonly listNotifications: (wanted: PageWanted) => Promise<Page>;
  readonly cursors: Cursors;
}

/** Above every ULID. */
const END = 'ntf_~';

/** `GET /v1/notifications`. */
export function listNotifications(app: FastifyInstance, deps: ListNotificationsDeps): void {
  const sendAnswer = answerer(notificationListSchema);

  app.get<{ Querystring: ListNotificationsQuery }>(
    '/v1/notifications',
    { config: { readQuery: readListQuery } },
    async (request, reply) => {
      const { caller, query } = request;
      const scope = scopeOf(caller, query);
      const { notifications, next } = await deps.listNotifications({
        partnerId: caller.partnerId,
        environment: caller.environment,
        eventId: query.event_id,
        applicationId: query.credit_application_id,
        merchantReference: query.merchant_reference,
        status: query.status,
        eventType: query.event_type,
        sequence: query.sequence,
        ...(await spanOf(query, scope)),
        limit: query.limit,
      });
      return sendAnswer(reply, {
        notifications: notifications.map(notificationToWire),
        next_cursor: next && (await deps.cursors.seal(next.slice('ntf_'.length), scope)),
      });
    },
  );

  /** Ids of the span; a cursor lies within it. */
  async function spanOf(
    { created_from: from, created_to: to, cursor }: ListNotificationsQuery,
    scope: CursorScope,
  ) {
    if (from !== undefined && to !== undefined && from >= to) {
      const message = 'created_to must lie after created_from.';
      throw new ApiError('INVALID_REQUEST', message, { field: 'created_to' });
    }
    const fromId = from === undefined ? 'ntf_' : lowestNotificationId(from.getTime());
    if (cursor === undefined)
      return { fromId, beforeId: to === undefined ? END : lowestNotificationId(to.getTime()) };
    const position = await deps.cursors.open(cursor, scope);
    if (position !== null) return { fromId, beforeId: `ntf_${position}` };
    const message = 'cursor is not the next_cursor of a page with these filters.';
    throw new ApiError('INVALID_REQUEST', message, { field: 'cursor' });
  }
}

/** What must be the same for the next page. */
const scopeOf = ({ partnerId, environment }: Caller, query: ListNotificationsQuery): CursorScope => [
  partnerId,
  environment,
  query.event_id ?? null,
  query.sequence ?? null,
  query.status ?? null,
  query.event_type ?? null,
  query.credit_application_id ?? null,
  query.merchant_reference ?? null,
  query.created_from?.getTime() ?? null,
  query.created_to?.getTime() ?? null,
];

/** What a cursor is good for: every part of it is authenticated. */
export type CursorScope = readonly (string | number | null)[];

/** Enough that nobody finds one by trying. */
const MAC_BYTES = 16;
/** Where the next page begins: the 26 characters of a ULID. */
const POSITION = /^[0-9A-HJKMNP-TV-Z]{26}$/;

export interface Cursors {
  /** @param position a ULID. */
  seal(position: string, scope: CursorScope): Promise<string>;
  /** The position; null for a cursor that was not made here for the same scope. */
  open(cursor: string, scope: CursorScope): Promise<string | null>;
}

/**
 * Cursors of pages: a position and an HMAC-SHA256 over it and its scope (partner, environment, filters), in base64url. A
 * partner cannot make one, nor use another's.
 * @param readSecret asked once, and again after a failure.
 */
export function createCursors(readSecret: () => Promise<Buffer>): Cursors {
  let secret: Promise<Buffer> | null = null;
  const secretOnce = () =>
    (secret ??= readSecret().catch((error: unknown) => {
      secret = null;
      throw error;
    }));
  async function macOf(position: string, scope: CursorScope): Promise<Buffer> {
    const hmac = createHmac('sha256', await secretOnce()).update(JSON.stringify([position, ...scope]));
    return hmac.digest().subarray(0, MAC_BYTES);
  }
  return {
    async seal(position, scope) {
      const parts = [Buffer.from(position, 'latin1'), await macOf(position, scope)];
      return Buffer.concat(parts).toString('base64url');
    },
    async open(cursor, scope) {
      const bytes = Buffer.from(cursor, 'base64url');
      const position = bytes.toString('latin1', 0, 26);
      const canonical = bytes.length === 26 + MAC_BYTES && bytes.toString('base64url') === cursor;
      if (!canonical || !POSITION.test(position)) return null;
      return timingSafeEqual(bytes.subarray(26), await macOf(position, scope)) ? position : null;
    },
  };
}

export interface GetNotificationDeps {
  readonly findNotification: (notificationId: string, owner: Tenant) => Promise<PartnerNotification | null>;
}

/** The path parameter of a notification's routes. What is no id is another path, and 404 `NOT_FOUND`. */
export interface NotificationPath {
  Params: { readonly notification_id: string };
}

const ONE = idRoute('/v1/notifications/{notification_id}', ID_PATTERNS);

export const noSuchNotification = () =>
  new ApiError('NOTIFICATION_NOT_FOUND', 'The notification does not exist.', { field: 'notification_id' });

/** `GET /v1/notifications/{notification_id}`. */
export function getNotification(app: FastifyInstance, deps: GetNotificationDeps): void {
  const sendAnswer = answerer(notificationResponseSchema);

  app.get<NotificationPath>(ONE.url, ONE.options, async (request, reply) => {
    const found = await deps.findNotification(request.params.notification_id, request.caller);
    if (found === null) throw noSuchNotification();
    return sendAnswer(reply, notificationWithLog(found));
  });
}

export interface ResendNotificationDeps {
  readonly resendNotification: (
    notificationId: string,
    by: { readonly owner: Tenant; readonly keyId: string },
  ) => Promise<{ readonly eventId: string }>;
}

const RESEND = idRoute('/v1/notifications/{notification_id}/resend', ID_PATTERNS);

type NotResendable = NonNullable<ErrorDetails['reason']>;
const WHY_NOT: Readonly<Record<NotResendable, string>> = {
  under_way: 'The notification is under way: wait until it has ended.',
  test: 'Tests are not sent again: send a new one.',
  payload_removed: 'The payload of the notification has been removed, as its time of keeping is over.',
};

/** `POST /v1/notifications/{notification_id}/resend`. */
export function resendNotification(app: FastifyInstance, deps: ResendNotificationDeps): void {
  const sendAnswer = answerer(resendResponseSchema);

  app.post<NotificationPath>(RESEND.url, RESEND.options, async (request, reply) => {
    const { caller, params } = request;
    const { keyId, partnerId, environment } = caller;
    const owner = { partnerId, environment };
    const { notification_id } = params;
    const { eventId } = await deps
      .resendNotification(notification_id, { owner, keyId })
      .catch((error: unknown) => {
        throw error instanceof Refused ? refusal(error, environment) : error;
      });
    return sendAnswer(reply, { notification_id, event_id: eventId, status: 'pending' }, 202);
  });
}

function refusal({ reason, why }: Refused, environment: Tenant['environment']): ApiError {
  if (reason === 'not_found') return noSuchNotification();
  if (why === 'no_endpoint') return notRegistered(environment);
  const known = (Object.keys(WHY_NOT) as NotResendable[]).find((one) => one === why) ?? 'under_way';
  return new ApiError('NOTIFICATION_NOT_RESENDABLE', WHY_NOT[known], { reason: known });
}

/** Unix milliseconds as a moment of an answer. */
export const moment = (ms: number) => new Date(ms).toISOString();
const momentOrNull = (ms: number | null) => (ms === null ? null : moment(ms));

/** The id says when it was created: filters and pages go by it, so that what is shown and what is searched for agree. */
export function notificationToWire(one: Listed): NotificationItem {
  return {
    notification_id: one.notificationId,
    event_id: one.eventId,
    event_type: one.eventType,
    status: one.status,
    reason:
      one.status === 'delivered' || one.endReason === null
        ? null
        : shownReason(one.endReason, notificationReasons),
    created_at: moment(createdMs(one.notificationId)),
    credit_application_id: one.applicationId,
    merchant_reference: one.merchantReference,
    sequence: one.sequence,
    attempts: one.attempts,
    last_attempt: one.lastAttempt && { at: moment(one.lastAttempt.atMs), ...attemptToWire(one.lastAttempt) },
    next_attempt_at: momentOrNull(one.nextAttemptMs),
    delivered_at: momentOrNull(one.deliveredMs),
  };
}

export function notificationWithLog(one: PartnerNotification): NotificationBody['data'] {
  const { body, log } = one;
  return {
    ...notificationToWire(one),
    payload: body === '' ? null : body,
    attempt_log: log.map((attempt) => ({
      number: attempt.number,
      at: moment(attempt.atMs),
      finished_at: momentOrNull(attempt.finishedMs),
      ...attemptToWire(attempt),
    })),
  };
}

const attemptToWire = ({ outcome, httpStatus, failure, durationMs }: ListedAttempt) => ({
  outcome,
  http_status: httpStatus,
  failure,
  duration_ms: durationMs,
});
