import { z } from 'zod';
import { answerSchema } from './answer';
import { APPLICATION_STATES } from '../domain/application-states';
import { visibleText } from './credit-application';
import { inOurTime } from './partner-fields';
import { bodyValidator } from './validate';

const STATES = APPLICATION_STATES.join(', ');

/** How far ahead of ours a lender's clock may be: more is a fault of its clock or a date that is no report. */
export const MOST_MINUTES_AHEAD = 5;

/** Body of `POST /internal/v1/credit-applications/{credit_application_id}/lender-events`. */
export const lenderEventRequestSchema = z
  .object({
    lender_event_id: visibleText('lender_event_id', 128).meta({
      description: "The lender's own id of the event: the same again answers the same.",
      examples: ['9f1c-0042'],
    }),
    status: z
      .enum(APPLICATION_STATES, `status must be one of ${STATES}.`)
      .meta({ description: 'State that the application is in now, as the lender sees it.' }),
    occurred_at: z.iso
      .datetime({
        offset: true,
        error: 'occurred_at must be a moment of ISO 8601, such as 2026-11-21T12:00:00Z.',
      })
      .refine(inOurTime, 'occurred_at must lie between the years 2000 and 2099.')
      .transform((text) => new Date(text))
      .meta({
        description: `When the lender says it happened, with Z or an offset; kept to the millisecond. At most ${MOST_MINUTES_AHEAD} minutes in the future.`,
        examples: ['2026-11-21T11:59:58.000Z'],
      }),
  })
  .meta({ id: 'LenderEventRequest', description: 'Other fields are ignored and not stored.' });

export const readLenderEvent = bodyValidator(lenderEventRequestSchema);

const VERDICTS = ['applied', 'same_state', 'waiting', 'not_applied'] as const;

export const state = () => z.enum(APPLICATION_STATES);
export const moment = (description: string) => z.iso.datetime().meta({ description });

const told = {
  lender_event_id: z.string(),
  status: state().meta({ description: 'What the lender told.' }),
  occurred_at: moment('When the lender says it happened.'),
  received_at: moment('When it arrived here.'),
} as const;

/** The answer to a lender's event; the same for the same event, whatever has happened since. */
export const lenderEventResponseSchema = answerSchema('LenderEventResponse', {
  credit_application_id: z.string(),
  ...told,
  outcome: z.enum(VERDICTS).meta({
    description:
      '`applied`: the application came into this state, and its partner is told. `same_state`: it was in it already. ' +
      '`waiting`: a step before it is missing; it is applied once that is told, or without it when the wait is over. ' +
      '`not_applied`: it lies behind, or can never follow. All are stored.',
  }),
  application_status: state().meta({ description: 'State of the application once this was taken in.' }),
});

export type LenderEventBody = z.infer<typeof lenderEventResponseSchema>;

export const lenderEventSchema = z
  .object({
    ...told,
    outcome: z.enum(VERDICTS).meta({ description: 'What has become of it by now.' }),
    previous_status: state().nullable().meta({ description: 'State that it replaced; null unless applied.' }),
    sequence: z.int().nullable().meta({ description: 'Sequence of its notification; null unless applied.' }),
    applied_at: moment('When it was applied; null unless it was.').nullable(),
    waits_until: moment(
      'While it is `waiting`: when it is applied without the steps that are missing. Null otherwise.',
    ).nullable(),
  })
  .meta({ id: 'LenderEvent' });
