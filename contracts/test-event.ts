import { TEST_EVENT_TYPE, type TestEvent } from './webhook-event';
import type { TestLender } from './test-notification';

/** Sample references: eight alphanumerics for `lender_a`, seven digits for `lender_b`. */
const SAMPLES: Readonly<Record<TestLender, string>> = { lender_a: 'TE5T0000', lender_b: '0000000' };

/** Of the right form, and never given to a real application, quote or merchant. */
const NO_ULID = '0'.repeat(26);
export const TEST_APPLICATION_ID = `app_${NO_ULID}`;
export const TEST_REFERENCE = 'TEST';
export const TEST_SEQUENCE = 1;

/**
 * The payload of a test notification.
 * @param of.lender whose sample reference to carry; null for the standard payload.
 */
export function testEvent(of: {
  readonly eventId: string;
  readonly environment: 'sandbox' | 'live';
  readonly createdAt: Date;
  readonly lender: TestLender | null;
}): TestEvent {
  const { eventId, environment, createdAt, lender } = of;
  const at = createdAt.toISOString();
  return {
    event_id: eventId,
    event_type: TEST_EVENT_TYPE,
    api_version: 'v1',
    environment,
    created_at: at,
    sequence: TEST_SEQUENCE,
    data: {
      credit_application_id: TEST_APPLICATION_ID,
      service_quote_id: `qte_${NO_ULID}`,
      merchant_reference: TEST_REFERENCE,
      merchant_id: 'M000000',
      lender: lender ?? 'test_lender',
      lender_reference: lender === null ? 'TEST' : SAMPLES[lender],
      status: 'test',
      previous_status: null,
      loan_amount: '900.00',
      customer_deposit: '100.00',
      occurred_at: at,
      credit_product: 'TEST',
    },
  };
}
