import type { FastifyInstance } from 'fastify';
import {
  notificationListSchema,
  readListQuery,
  type ListNotificationsQuery,
} from '../../contracts/notifications';
import type { Page, PageWanted } from '../../db/notifications/partner';
import { lowestNotificationId } from '../../db/notifications/notification';
import { ApiError } from '../errors';
import type { CursorScope, Cursors } from '../notifications/cursor';
import { notificationToWire } from '../notifications/to-wire';
import type { Caller } from '../plugins/authenticate';
import { answerer } from '../serializer';

export interface ListNotificationsDeps {
  readonly listNotifications: (wanted: PageWanted) => Promise<Page>;
  readonly cursors: Cursors;
}

const options = { config: { readQuery: readListQuery } };

/** Above every ULID. */
const END = 'ntf_~';

/** `GET /v1/notifications`. */
export function listNotifications(app: FastifyInstance, deps: ListNotificationsDeps): void {
  const sendAnswer = answerer(notificationListSchema);

  app.get<{ Querystring: ListNotificationsQuery }>('/v1/notifications', options, async (request, reply) => {
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
  });

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
