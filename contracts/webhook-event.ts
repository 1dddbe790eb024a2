import { z } from 'zod';
import type { ApplicationChange } from '../domain/application';
import { APPLICATION_STATES } from '../domain/application-states';
import { formatPence } from '../domain/money';
import { TEST_EVENT_TYPE } from '../domain/notification-states';
import { answeredAmount, applicationIdField, momentField, text, textOrNull } from './fields';

/** Most bytes of UTF-8 of a webhook's body. */
export const MAX_EVENT_BYTES = 20_000;

const money = (description: string) => answeredAmount('900.00', description);

export const statusField = z.enum(APPLICATION_STATES).meta({
  description: 'State of the application. More may be added: leave alone what you do not know.',
  examples: ['accepted'],
});

export const applicationFields = {
  credit_application_id: applicationIdField,
  service_quote_id: text('The quote it came from.', 'qte_01KAF0W3N5Q7R9T1V3X5Z7B9D1'),
  merchant_reference: textOrNull('The reference sent with the quote.', 'basket 2041'),
  merchant_id: text('The merchant of the quote.', 'M100001'),
  lender: text('Key of the lender.', 'lender_a'),
  lender_reference: text("The lender's own reference; its format differs per lender.", 'AB12CD34'),
} as const;

const amounts = {
  loan_amount: money('Amount financed, in pounds.'),
  customer_deposit: money('Deposit, in pounds.'),
  occurred_at: momentField('When the lender says it happened, UTC.'),
} as const;

export const creditProductField = textOrNull(
  'The credit product that was applied for; null when the link named none.',
  'Classic credit 12 months',
);

export const sequenceField = z
  .int()
  .min(1)
  .meta({ description: 'Its position in the application.', examples: [3] });

const event = <Type extends z.ZodType, State extends z.ZodRawShape>(event_type: Type, state: State) => ({
  event_id: text(
    'The same in every attempt, and in the header webhook-id: drop what you have seen.',
    'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
  ),
  event_type,
  api_version: z.literal('v1').meta({ description: 'The form of the event.' }),
  environment: z
    .enum(['sandbox', 'live'])
    .meta({ description: 'That of the key that made the quote, or asked for the test.' }),
  created_at: momentField('When the event was made, UTC.'),
  sequence: sequenceField.meta({
    description: 'Counts the events of one application: drop one that is older than what you have.',
    examples: [3],
  }),
  data: z.object({ ...applicationFields, ...state, ...amounts, credit_product: creditProductField }),
});

export const applicationEventSchema = z
  .object(
    event(
      z.enum(APPLICATION_STATES.map((state) => `credit_application.${state}` as const)).meta({
        description: 'More may be added: answer 2xx to what you do not know, and drop it.',
        examples: ['credit_application.accepted'],
      }),
      {
        status: statusField,
        previous_status: statusField
          .nullable()
          .meta({ description: 'Null for the first event of an application.' }),
      },
    ),
  )
  .meta({ id: 'CreditApplicationEvent' });

export type ApplicationEvent = z.infer<typeof applicationEventSchema>;

export const testEventSchema = z
  .object(
    event(z.literal(TEST_EVENT_TYPE).meta({ description: 'Drop it: it stands for no application.' }), {
      status: z.literal('test').meta({ description: 'No state of an application.' }),
      previous_status: textOrNull('Always null.'),
    }),
  )
  .meta({ id: 'TestEvent' });

type TestEvent = z.infer<typeof testEventSchema>;

/**
 * The body of a status notification, made once and sent byte for byte.
 * @throws RangeError above 20 KB, which no field allows
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
  if (new TextEncoder().encode(text).length > MAX_EVENT_BYTES)
    throw new RangeError(`the event of ${change.applicationId} is larger than ${MAX_EVENT_BYTES} bytes`);
  return text;
}

export const testLenders = ['lender_a', 'lender_b'] as const;
export type TestLender = (typeof testLenders)[number];

/** Sample references: eight alphanumerics for `lender_a`, seven digits for `lender_b`. */
const SAMPLES: Readonly<Record<TestLender, string>> = { lender_a: 'TE5T0000', lender_b: '0000000' };

/** Of the right form, and never given to a real application, quote or merchant. */
const NO_ULID = '0'.repeat(26);
export const TEST_APPLICATION_ID = `app_${NO_ULID}`;
export const TEST_REFERENCE = 'TEST';
export const TEST_SEQUENCE = 1;

/**
 * The payload of a test notification.
 * @param of.lender whose sample reference it has; null for the standard payload
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

const applicationEvent: ApplicationEvent = {
  event_id: 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B9',
  event_type: 'credit_application.accepted',
  api_version: 'v1',
  environment: 'live',
  created_at: '2026-11-21T12:00:00.120Z',
  sequence: 3,
  data: {
    credit_application_id: 'app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
    service_quote_id: 'qte_01KAF0W3N5Q7R9T1V3X5Z7B9D1',
    merchant_reference: 'basket 2041',
    merchant_id: 'M100001',
    lender: 'lender_a',
    lender_reference: 'AB12CD34',
    status: 'accepted',
    previous_status: 'submitted',
    loan_amount: '900.00',
    customer_deposit: '100.00',
    occurred_at: '2026-11-21T11:59:58.000Z',
    credit_product: 'Classic credit 12 months',
  },
};

export const applicationEventExamples = {
  accepted: { summary: 'An application was accepted', value: applicationEvent },
};

const testEventExample = (lender: TestLender | null) =>
  testEvent({
    eventId: 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B8',
    environment: 'sandbox',
    createdAt: new Date('2026-11-21T12:00:00.000Z'),
    lender,
  });
export const testEventExamples = {
  standard: { summary: 'Without a lender', value: testEventExample(null) },
  lender_a: { summary: 'With `?lender=lender_a`', value: testEventExample('lender_a') },
  lender_b: { summary: 'With `?lender=lender_b`', value: testEventExample('lender_b') },
};
