import type {
  ApplicationBody,
  CreatedApplicationBody,
  LenderEventBody,
} from '../../contracts/credit-application';
import type { Application, ApplicationStory } from '../../db/applications/read';
import type { LenderEvent } from '../../db/applications/record-lender-event';
import type { Verdict } from '../../domain/application-states';
import { formatPence } from '../../domain/money';

/** The wire form of an application that has been opened: the same however often it is asked for. */
export function createdToWire(application: Application): CreatedApplicationBody['data'] {
  return {
    credit_application_id: application.applicationId,
    environment: application.environment,
    partner_id: application.partnerId,
    merchant_id: application.merchantId,
    service_quote_id: application.quoteId,
    merchant_reference: application.merchantReference,
    lender: application.lender,
    lender_reference: application.lenderReference,
    loan_amount: formatPence(application.loanPence),
    customer_deposit: formatPence(application.depositPence),
    credit_product: application.creditProduct,
    created_at: application.createdAt.toISOString(),
  };
}

function toldToWire(event: LenderEvent) {
  return {
    lender_event_id: event.lenderEventId,
    status: event.status,
    occurred_at: event.occurredAt.toISOString(),
    received_at: event.receivedAt.toISOString(),
  };
}

export function lenderEventToWire(event: LenderEvent): LenderEventBody['data'] {
  return {
    credit_application_id: event.applicationId,
    ...toldToWire(event),
    outcome: event.verdict,
    application_status: event.stateAfter,
  };
}

/** The outcome of an event by now: one that waited may have been applied, or the application may have passed it by. */
function outcomeNow({ verdict, appliedAt, waitsUntil }: LenderEvent): Verdict {
  if (verdict !== 'waiting') return verdict;
  if (appliedAt !== null) return 'applied';
  return waitsUntil === null ? 'not_applied' : 'waiting';
}

export function applicationToWire({
  application,
  events,
  notifications,
}: ApplicationStory): ApplicationBody['data'] {
  return {
    ...createdToWire(application),
    status: application.state,
    updated_at: application.updatedAt.toISOString(),
    lender_events: events.map((event) => ({
      ...toldToWire(event),
      outcome: outcomeNow(event),
      previous_status: event.previousState,
      sequence: event.sequence,
      applied_at: event.appliedAt?.toISOString() ?? null,
      waits_until: event.waitsUntil?.toISOString() ?? null,
    })),
    notifications: notifications.map((one) => ({
      notification_id: one.notificationId,
      event_id: one.eventId,
      event_type: one.eventType,
      sequence: one.sequence,
      state: one.state,
      end_reason: one.endReason,
      created_at: one.createdAt.toISOString(),
      delivered_at: one.deliveredAt?.toISOString() ?? null,
    })),
  };
}
