import { z } from 'zod';
import { answerSchema } from './answer';
import { answeredAmount } from './amount';
import { lenderEventSchema, moment, state } from './lender-event';

const money = () => answeredAmount('900.00');

const application = {
  credit_application_id: z.string().meta({ examples: ['app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'] }),
  environment: z.enum(['sandbox', 'live']).meta({ description: 'That of the key that made the quote.' }),
  partner_id: z.string(),
  merchant_id: z.string(),
  service_quote_id: z.string(),
  merchant_reference: z.string().nullable().meta({ description: "The partner's own, from the quote." }),
  lender: z.string(),
  lender_reference: z.string(),
  loan_amount: money(),
  customer_deposit: money(),
  credit_product: z.string().nullable().meta({ description: 'Null when the link named none.' }),
  created_at: moment('When it was opened.'),
} as const;

/** The answer to opening an application; the same for the same request, whatever has happened since. */
export const createdApplicationSchema = answerSchema('CreatedApplication', application);

export type CreatedApplicationBody = z.infer<typeof createdApplicationSchema>;

export const applicationResponseSchema = answerSchema('ApplicationResponse', {
  ...application,
  status: state(),
  updated_at: moment('When it came into this state.'),
  lender_events: z.array(lenderEventSchema).meta({
    description: 'All that the lender told, in the order of arrival, applied or not.',
  }),
  notifications: z
    .array(
      z.object({
        notification_id: z.string(),
        event_id: z.string(),
        event_type: z.string(),
        sequence: z.int().nullable(),
        state: z.string().meta({
          description: '`queued`, `started`, `held`, `delivered`, `failed`, `cancelled` or `expired`.',
        }),
        end_reason: z.string().nullable().meta({ description: 'Why it is held, or ended undelivered.' }),
        created_at: moment('When it was made.'),
        delivered_at: moment('The first 2xx.').nullable(),
      }),
    )
    .meta({ description: 'What the partner is told, in order. Those of dropped months are missing.' }),
});

export type ApplicationBody = z.infer<typeof applicationResponseSchema>;
