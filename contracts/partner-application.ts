import { z } from 'zod';
import { answered, answerSchema, eventIdField, momentField, notificationIdField, text } from './fields';
import {
  applicationEventExamples,
  applicationFields,
  creditProductField,
  sequenceField,
  statusField,
} from './webhook-event';

export const partnerApplicationSchema = answerSchema('CreditApplicationResponse', {
  ...applicationFields,
  status: statusField.meta({ description: 'The state that it is in now.' }),
  credit_product: creditProductField,
  created_at: momentField('When it was opened.'),
  updated_at: momentField('When it came into this state here.'),
  events: z
    .array(
      z.object({
        sequence: sequenceField,
        event_id: eventIdField,
        notification_id: notificationIdField.meta({ description: 'The notification that brings it.' }),
        event_type: text('Type of the event.', 'credit_application.accepted'),
        status: statusField,
        previous_status: statusField.nullable().meta({ description: 'Null for the first.' }),
        occurred_at: momentField('When the lender says it happened.'),
      }),
    )
    .meta({
      description:
        'Every event that you were or will be sent, in order. Those whose time of keeping is over are missing.',
    }),
});

export type PartnerApplicationBody = z.infer<typeof partnerApplicationSchema>;

const event = applicationEventExamples.accepted.value;
const {
  status,
  previous_status,
  occurred_at,
  credit_product,
  loan_amount: _loan,
  customer_deposit: _deposit,
  ...identified
} = event.data;

export const partnerApplicationExamples = {
  accepted: answered<PartnerApplicationBody>('Two of its events', {
    ...identified,
    status,
    credit_product,
    created_at: '2026-11-21T11:40:00.000Z',
    updated_at: '2026-11-21T12:00:00.120Z',
    events: [
      {
        sequence: 1,
        event_id: 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B7',
        notification_id: 'ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B7',
        event_type: 'credit_application.created',
        status: 'created',
        previous_status: null,
        occurred_at: '2026-11-21T11:40:00.000Z',
      },
      {
        sequence: 3,
        event_id: event.event_id,
        notification_id: 'ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B9',
        event_type: 'credit_application.accepted',
        status,
        previous_status,
        occurred_at,
      },
    ],
  }),
};
