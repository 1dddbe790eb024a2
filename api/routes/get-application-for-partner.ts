import type { FastifyInstance } from 'fastify';
import { partnerApplicationSchema, type PartnerApplicationBody } from '../../contracts/webhook-event';
import type { PartnerApplication } from '../../db/applications/applications';
import type { ApplicationState } from '../../domain/application-states';
import { answerer } from '../answers';
import { idRoute } from '../observe';
import type { ApiQueries } from '../queries';
import { noSuchApplication, type ApplicationPath } from './credit-applications';
import { moment } from './notifications';

export function getApplicationForPartner(app: FastifyInstance, queries: ApiQueries): void {
  const sendAnswer = answerer(partnerApplicationSchema);
  const { url, options } = idRoute('/v1/credit-applications/{credit_application_id}');

  app.get<ApplicationPath>(url, options, async (request, reply) => {
    const found = await queries.findPartnerApplication(request.params.credit_application_id, request.caller);
    if (found === null) throw noSuchApplication();
    return sendAnswer(reply, partnerApplicationToWire(found));
  });
}

export const partnerApplicationToWire = (one: PartnerApplication): PartnerApplicationBody['data'] => ({
  credit_application_id: one.applicationId,
  service_quote_id: one.quoteId,
  merchant_reference: one.merchantReference,
  merchant_id: one.merchantId,
  lender: one.lender,
  lender_reference: one.lenderReference,
  status: one.state,
  credit_product: one.creditProduct,
  created_at: moment(one.createdMs),
  updated_at: moment(one.updatedMs),
  events: one.events.map((event) => ({
    sequence: event.sequence,
    event_id: event.eventId,
    notification_id: event.notificationId,
    event_type: event.eventType,
    status: event.eventType.slice('credit_application.'.length) as ApplicationState,
    previous_status: event.previousStatus,
    occurred_at: moment(event.occurredMs),
  })),
});
