import type { Tenant } from '../../domain/tenant';
import type { FastifyInstance } from 'fastify';
import { notificationResponseSchema } from '../../contracts/notifications';
import { ID_PATTERNS } from '../../contracts/fields';
import type { PartnerNotification } from '../../db/notifications/partner';
import { ApiError } from '../errors';
import { notificationWithLog } from '../notifications/to-wire';
import { idRoute } from '../plugins/route-name';
import { answerer } from '../serializer';

export interface GetNotificationDeps {
  readonly findNotification: (notificationId: string, owner: Tenant) => Promise<PartnerNotification | null>;
}

/** The path parameter of a notification's routes. What is no id is another path, and 404 `NOT_FOUND`. */
export interface NotificationPath {
  Params: { readonly notification_id: string };
}

const { url, options } = idRoute('/v1/notifications/{notification_id}', ID_PATTERNS);

export const noSuchNotification = () =>
  new ApiError('NOTIFICATION_NOT_FOUND', 'The notification does not exist.', { field: 'notification_id' });

/** `GET /v1/notifications/{notification_id}`. */
export function getNotification(app: FastifyInstance, deps: GetNotificationDeps): void {
  const sendAnswer = answerer(notificationResponseSchema);

  app.get<NotificationPath>(url, options, async (request, reply) => {
    const found = await deps.findNotification(request.params.notification_id, request.caller);
    if (found === null) throw noSuchNotification();
    return sendAnswer(reply, notificationWithLog(found));
  });
}
