import {
  recoverDryRunExamples,
  recoverDryRunSchema,
  recoverExamples,
  recoverRequest,
  recoverResponseSchema,
  recoveryExamples,
  recoveryResponseSchema,
  type RecoveryBody,
} from '../../contracts/notification-recovery';
import type { Matched } from '../../db/notifications/recoverable';
import type { RecoveryProgress } from '../../db/notifications/recovery';
import { Refused } from '../../db/refused';
import { LONGEST_RECOVERY_DAYS } from '../../domain/retention';
import { answerer, toTimestamp } from '../answers';
import { bodyOf } from '../body';
import type { Caller } from '../checks';
import { invalidField, refused, type ApiError } from '../errors';
import { operation } from '../operation';
import type { WithQueries } from '../queries';

const recoverNotifications = operation({
  call: 'POST /v1/notifications/recover',
  id: 'recoverNotifications',
  tag: 'Notifications',
  summary: 'Send all that was missed again',
  description:
    'Everything `failed`, `held` or `expired` that was created in the span, which may begin at most 30 days ago, is sent again, in ' +
    'order per application, at ten a second and behind what is live. One recovery at a time in each environment. Begin with ' +
    '`dry_run: true`, which only counts.',
  body: recoverRequest,
  answers: {
    200: ['Of a dry run: what would be sent again.', recoverDryRunSchema, recoverDryRunExamples],
    202: ['The recovery has begun.', recoverResponseSchema, recoverExamples],
  },
  codes: ['RECOVERY_UNDER_WAY', 'RECOVERY_DISABLED', 'WEBHOOK_NOT_REGISTERED'],
  wrong: [{ created_from: 'yesterday' }, { created_to: null }],
  handler: ({ queries }: WithQueries) => {
    const sendCount = answerer(recoverDryRunSchema);
    const sendAnswer = answerer(recoverResponseSchema);
    return async ({ caller, body }, reply) => {
      const { created_from: since, created_to: until, dry_run: dryRun } = bodyOf(recoverRequest.read, body);
      if (since >= until) throw invalidField('created_to', 'must lie after created_from.');
      const { keyId, partnerId, environment } = caller;
      const wanted = { owner: { partnerId, environment }, keyId, since, until };
      const refuse = (error: unknown) => {
        throw error instanceof Refused ? refusalOf(error, caller) : error;
      };
      if (dryRun)
        return sendCount(reply, matchedToWire(await queries.countRecoverable(wanted).catch(refuse)));
      const begun = await queries.recoverNotifications(wanted).catch(refuse);
      return sendAnswer(reply, { recovery_id: begun.recoveryId, ...matchedToWire(begun) }, 202);
    };
  },
});

const matchedToWire = ({ matched, isMinimum }: Matched) => ({
  matched,
  ...(isMinimum && { matched_is_minimum: true as const }),
});

function refusalOf({ detail, otherId }: Refused, { environment }: Caller): ApiError {
  if (detail === 'too_long_ago')
    return invalidField('created_from', `must lie at most ${LONGEST_RECOVERY_DAYS} days ago.`);
  if (detail === 'empty_span') return invalidField('created_from', 'must lie before now.');
  if (detail === 'no_endpoint') return refused('WEBHOOK_NOT_REGISTERED', environment);
  if (detail === 'disabled') return refused('RECOVERY_DISABLED');
  return refused('RECOVERY_UNDER_WAY', environment, otherId);
}

const getRecovery = operation({
  call: 'GET /v1/notifications/recoveries/{recovery_id}',
  id: 'getRecovery',
  tag: 'Notifications',
  summary: 'Read how far a recovery has come',
  description: 'How many of the span have been sent again so far, and what came of them.',
  answers: { 200: ['The recovery.', recoveryResponseSchema, recoveryExamples] },
  codes: ['RECOVERY_NOT_FOUND'],
  handler: ({ queries }: WithQueries) => {
    const sendAnswer = answerer(recoveryResponseSchema);
    return async ({ params, caller }, reply) => {
      const found = await queries.recoveryProgress(params.recovery_id, caller);
      if (found === null) throw refused('RECOVERY_NOT_FOUND');
      return sendAnswer(reply, toWire(found));
    };
  },
});

export const recoveryOperations = [recoverNotifications, getRecovery];

function toWire(one: RecoveryProgress): RecoveryBody['data'] {
  const { resent, delivered, underWay } = one;
  const status = statusOf(one);
  const isOver = status === 'finished' || status === 'stopped';
  return {
    recovery_id: one.recoveryId,
    status,
    ...matchedToWire(one),
    resent,
    delivered,
    // Includes what a later recovery has taken over, which could only be what had failed here.
    failed: Math.max(0, resent - delivered - underWay),
    created_at: toTimestamp(one.createdMs),
    finished_at: isOver ? toTimestamp(one.lastMs) : null,
  };
}

function statusOf({ state, underWay }: RecoveryProgress): RecoveryBody['data']['status'] {
  if (state === 'running') return 'running';
  if (state === 'interrupted') return 'stopped';
  return underWay > 0 ? 'delivering' : 'finished';
}
