import { z } from 'zod';
import { LONGEST_RECOVERY_DAYS } from '../domain/retention';
import { answered, answerSchema, count, momentField, sentMoment, text } from './fields';
import { requestBody } from './validate';

const recoverRequestSchema = z
  .strictObject({
    created_from: sentMoment(
      'created_from',
      `Created at this moment or later; at most ${LONGEST_RECOVERY_DAYS} days ago.`,
    ),
    created_to: sentMoment('created_to', 'Created before this moment; a later one than now counts as now.'),
    dry_run: z
      .boolean('dry_run must be true or false.')
      .optional()
      .transform((sent) => sent ?? false)
      .meta({ description: 'True: only count. False when omitted.' }),
  })
  .meta({ id: 'RecoverRequest' });

export const recoverRequest = requestBody(recoverRequestSchema, {
  outage: {
    summary: 'What was missed in an outage',
    value: { created_from: '2026-11-21T00:00:00Z', created_to: '2026-11-21T06:00:00Z', dry_run: true },
  },
});

const matched = count(
  'Notifications of the span that are `failed`, `held` or `expired`, tests and those without a payload left out; 10000 at most.',
  42,
);
const matched_is_minimum = z
  .literal(true)
  .optional()
  .meta({ description: 'Present when there are, or may be, more than `matched`. A recovery sends all.' });
const recoveryId = text('The recovery.', 'rcv_01KAF1Z4Q0T6M5S7Y2W3X4V5BA');

export const recoverDryRunSchema = answerSchema('RecoverDryRunResponse', { matched, matched_is_minimum });

type RecoverDryRunBody = z.infer<typeof recoverDryRunSchema>;

export const recoverDryRunExamples = {
  counted: answered<RecoverDryRunBody>('What would be sent again', { matched: 42 }),
};

export const recoverResponseSchema = answerSchema('RecoverResponse', {
  recovery_id: recoveryId,
  matched,
  matched_is_minimum,
});

type RecoverBody = z.infer<typeof recoverResponseSchema>;

const recovery_id = 'rcv_01KAF1Z4Q0T6M5S7Y2W3X4V5BA';
export const recoverExamples = {
  begun: answered<RecoverBody>('It has begun', { recovery_id, matched: 42 }),
};

export const recoveryResponseSchema = answerSchema('RecoveryResponse', {
  recovery_id: recoveryId,
  status: z.enum(['running', 'delivering', 'finished', 'stopped']).meta({
    description:
      '`running`: notifications are being sent again. `delivering`: all are, and some are still under way. `finished`: each has ended. `stopped`: it ended early, because your endpoint is not active any more or we stopped it; ask for another one once it is.',
  }),
  matched: matched.meta({ description: 'How many there were when it began, also above 10000.' }),
  matched_is_minimum: matched_is_minimum.meta({
    description: 'Present until more than 10000 have been counted, which takes some seconds.',
  }),
  resent: count(
    'Sent again so far. Fewer than `matched` in the end when some were resent or delivered otherwise meanwhile.',
    42,
  ),
  delivered: count('Of these: delivered.', 40),
  failed: count('Of these: ended undelivered again.', 2),
  created_at: momentField('When it began.'),
  finished_at: momentField('When the last of them had ended, or it was stopped; null before.').nullable(),
});

export type RecoveryBody = z.infer<typeof recoveryResponseSchema>;

export const recoveryExamples = {
  delivering: answered<RecoveryBody>('All are sent again, and one is still being tried', {
    recovery_id,
    status: 'delivering',
    matched: 42,
    resent: 42,
    delivered: 41,
    failed: 0,
    created_at: '2026-11-21T12:00:00.000Z',
    finished_at: null,
  }),
};
