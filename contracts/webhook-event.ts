import { TEST_EVENT_TYPE } from '../domain/notification-states';
import { z } from 'zod';
import { APPLICATION_STATES } from '../domain/application-states';
import { answeredAmount } from './amount';

/** The body of a webhook, stored once and sent byte for byte: never more than this many bytes of UTF-8. */
export const MAX_EVENT_BYTES = 20_000;

export { TEST_EVENT_TYPE };

const money = (description: string) => answeredAmount('900.00', description);
const moment = (description: string) =>
  z.iso.datetime().meta({ description, examples: ['2026-11-21T12:00:00.000Z'] });

export const statusField = z.enum(APPLICATION_STATES).meta({
  description: 'State of the application. More may be added: leave alone what you do not know.',
  examples: ['accepted'],
});

export const applicationFields = {
  credit_application_id: z.string().meta({ examples: ['app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'] }),
  service_quote_id: z
    .string()
    .meta({ description: 'The quote it came from.', examples: ['qte_01KAF0W3N5Q7R9T1V3X5Z7B9D1'] }),
  merchant_reference: z
    .string()
    .nullable()
    .meta({ description: 'The reference sent with the quote.', examples: ['basket 2041'] }),
  merchant_id: z.string().meta({ examples: ['M100001'] }),
  lender: z.string().meta({ description: 'Key of the lender.', examples: ['lender_a'] }),
  lender_reference: z.string().meta({
    description: "The lender's own reference; its format differs per lender.",
    examples: ['AB12CD34'],
  }),
} as const;

const amounts = {
  loan_amount: money('Amount financed, in pounds.'),
  customer_deposit: money('Deposit, in pounds.'),
  occurred_at: moment('When the lender says it happened, UTC.'),
} as const;

export const creditProductField = z
  .string()
  .nullable()
  .meta({
    description: 'The credit product that was applied for; null when the link named none.',
    examples: ['Classic credit 12 months'],
  });

/** The fields of an event, in their order. */
const event = <Type extends z.ZodType, State extends z.ZodRawShape>(event_type: Type, state: State) => ({
  event_id: z.string().meta({
    description: 'The same in every attempt, and in the header webhook-id: drop what you have seen.',
    examples: ['evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'],
  }),
  event_type,
  api_version: z.literal('v1'),
  environment: z.enum(['sandbox', 'live']),
  created_at: moment('When the event was made, UTC.'),
  sequence: z
    .int()
    .min(1)
    .meta({
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

/** The test event: the same shape and types, with placeholders for what there is none of. */
export const testEventSchema = z
  .object(
    event(z.literal(TEST_EVENT_TYPE), {
      status: z.literal('test').meta({ description: 'No state of an application.' }),
      previous_status: z.null(),
    }),
  )
  .meta({ id: 'TestEvent' });

export type TestEvent = z.infer<typeof testEventSchema>;
