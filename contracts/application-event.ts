import type { ApplicationChange } from '../domain/application';
import { formatPence } from '../domain/money';
import { MAX_EVENT_BYTES, type ApplicationEvent } from './webhook-event';

/**
 * The body of a status notification. Its text is made once, stored, and sent byte for byte.
 * @throws RangeError above 20 KB, which no field of ours allows.
 */
export function applicationEventText(change: ApplicationChange): string {
  const event: ApplicationEvent = {
    event_id: change.eventId,
    event_type: `credit_application.${change.status}`,
    api_version: 'v1',
    environment: change.environment,
    created_at: change.createdAt.toISOString(),
    sequence: change.sequence,
    data: {
      credit_application_id: change.applicationId,
      service_quote_id: change.quoteId,
      merchant_reference: change.merchantReference,
      merchant_id: change.merchantId,
      lender: change.lender,
      lender_reference: change.lenderReference,
      status: change.status,
      previous_status: change.previousStatus,
      loan_amount: formatPence(change.loanPence),
      customer_deposit: formatPence(change.depositPence),
      occurred_at: change.occurredAt.toISOString(),
      credit_product: change.creditProduct,
    },
  };
  const text = JSON.stringify(event);
  if (new TextEncoder().encode(text).length > MAX_EVENT_BYTES) {
    throw new RangeError(`the event of ${change.applicationId} is larger than ${MAX_EVENT_BYTES} bytes`);
  }
  return text;
}
