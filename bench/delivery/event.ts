import type { ApplicationEvent } from '../../contracts/webhook-event';

/** An event as our partners get them: what ours stores and sends, and what the floors make and send. */
export function benchEvent(eventId: string, applicationId: string): ApplicationEvent {
  const at = new Date().toISOString();
  return {
    event_id: eventId,
    event_type: 'credit_application.accepted',
    api_version: 'v1',
    environment: 'live',
    created_at: at,
    sequence: 1,
    data: {
      credit_application_id: applicationId,
      service_quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
      merchant_reference: 'basket 2041',
      merchant_id: 'M100001',
      lender: 'lender_a',
      lender_reference: 'AB12CD34',
      status: 'accepted',
      previous_status: 'submitted',
      loan_amount: '900.00',
      customer_deposit: '100.00',
      occurred_at: at,
    },
  };
}
