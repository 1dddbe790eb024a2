import type { Tenant } from '../../domain/tenant';
import type { FastifyInstance } from 'fastify';
import type { ErrorDetails } from '../../contracts/errors';
import { resendResponseSchema } from '../../contracts/notifications';
import { ID_PATTERNS } from '../../contracts/fields';
import { Refused } from '../../db/refused';
import { ApiError, notRegistered } from '../errors';
import { idRoute } from '../plugins/route-name';
import { answerer } from '../serializer';
import { noSuchNotification, type NotificationPath } from './get-notification';

export interface ResendNotificationDeps {
  readonly resendNotification: (
    notificationId: string,
    by: { readonly owner: Tenant; readonly keyId: string },
  ) => Promise<{ readonly eventId: string }>;
}

const { url, options } = idRoute('/v1/notifications/{notification_id}/resend', ID_PATTERNS);

type NotResendable = NonNullable<ErrorDetails['reason']>;
const WHY_NOT: Readonly<Record<NotResendable, string>> = {
  under_way: 'The notification is under way: wait until it has ended.',
  test: 'Tests are not sent again: send a new one.',
  payload_removed: 'The payload of the notification has been removed, as its time of keeping is over.',
};

/** `POST /v1/notifications/{notification_id}/resend`. */
export function resendNotification(app: FastifyInstance, deps: ResendNotificationDeps): void {
  const sendAnswer = answerer(resendResponseSchema);

  app.post<NotificationPath>(url, options, async (request, reply) => {
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
