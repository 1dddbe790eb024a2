import { z } from 'zod';
import { answerSchema } from './answer';
import { applicationIdField, eventIdField, momentField, notificationIdField } from './partner-fields';
import { applicationFields, creditProductField, statusField as status } from './webhook-event';

/** The answer of `GET /v1/credit-applications/{credit_application_id}`. */
export const partnerApplicationSchema = answerSchema('CreditApplicationResponse', {
  ...applicationFields,
  credit_application_id: applicationIdField,
  status: status.meta({ description: 'The state that it is in now.' }),
  credit_product: creditProductField,
  created_at: momentField('When it was opened.'),
  updated_at: momentField('When it came into this state here.'),
  events: z
    .array(
      z.object({
        sequence: z
          .int()
          .min(1)
          .meta({ examples: [3] }),
        event_id: eventIdField,
        notification_id: notificationIdField.meta({ description: 'The notification that brings it.' }),
        event_type: z.string().meta({ examples: ['credit_application.accepted'] }),
        status,
        previous_status: status.nullable().meta({ description: 'Null for the first.' }),
        occurred_at: momentField('When the lender says it happened.'),
      }),
    )
    .meta({
      description:
        'Every event that you were or will be sent, in order. Those whose time of keeping is over are missing.',
    }),
});

export type PartnerApplicationBody = z.infer<typeof partnerApplicationSchema>;
