import type { FastifyInstance } from 'fastify';
import type { ErrorDetails } from '../../contracts/errors';
import { resendResponseSchema } from '../../contracts/notifications';
import { ID_PATTERNS } from '../../contracts/partner-fields';
import type { EndpointQueue } from '../../db/notifications/hold';
import type { PartnerResend } from '../../db/notifications/resend-for-partner';
import { ApiError, notRegistered } from '../errors';
import { idRoute } from '../plugins/route-name';
import { answerer } from '../serializer';
import { noSuchNotification, type NotificationPath } from './get-notification';

export interface ResendNotificationDeps {
  readonly resendNotification: (
    notificationId: string,
    by: { readonly owner: EndpointQueue; readonly keyId: string },
  ) => Promise<PartnerResend>;
}

const { url, options } = idRoute('/v1/notifications/{notification_id}/resend', ID_PATTERNS);

const WHY_NOT: Readonly<Record<NonNullable<ErrorDetails['reason']>, string>> = {
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
    const answer = await deps.resendNotification(params.notification_id, { owner, keyId });
    if (answer.kind !== 'resent') throw refusal(answer, environment);
    const { notification_id } = params;
    return sendAnswer(reply, { notification_id, event_id: answer.eventId, status: 'pending' }, 202);
  });
}

function refusal(
  answer: Exclude<PartnerResend, { kind: 'resent' }>,
  environment: EndpointQueue['environment'],
): ApiError {
  if (answer.kind === 'not_found') return noSuchNotification();
  if (answer.kind === 'no_endpoint') return notRegistered(environment);
  // Only a recovery asks whether it was delivered meanwhile.
  const reason = answer.why === 'not_undelivered' ? 'under_way' : answer.why;
  return new ApiError('NOTIFICATION_NOT_RESENDABLE', WHY_NOT[reason], { reason });
}
