import type { FastifyInstance } from 'fastify';
import {
  readRecoverRequest,
  recoverDryRunSchema,
  recoverResponseSchema,
  recoveryResponseSchema,
  type RecoveryBody,
} from '../../contracts/notification-recovery';
import type { Matched } from '../../db/notifications/recoverable';
import type { RecoveryProgress } from '../../db/notifications/recovery';
import { Refused } from '../../db/refused';
import { LONGEST_RECOVERY_DAYS } from '../../domain/retention';
import { answerer } from '../answers';
import { bodyOf } from '../body';
import type { Caller } from '../checks';
import { ApiError, invalidField, notRegistered } from '../errors';
import { idRoute } from '../observe';
import type { ApiQueries } from '../queries';
import { moment } from './notifications';

export function recoverNotifications(app: FastifyInstance, queries: ApiQueries): void {
  const sendCount = answerer(recoverDryRunSchema);
  const sendAnswer = answerer(recoverResponseSchema);

  app.post('/v1/notifications/recover', async ({ caller, body }, reply) => {
    const { created_from: since, created_to: until, dry_run: dryRun } = bodyOf(readRecoverRequest, body);
    if (since >= until) throw invalidField('created_to', 'must lie after created_from.');
    const { keyId, partnerId, environment } = caller;
    const wanted = { owner: { partnerId, environment }, keyId, since, until };
    const refuse = (error: unknown) => {
      throw error instanceof Refused ? refusal(error, caller) : error;
    };
    if (dryRun) return sendCount(reply, matchedToWire(await queries.countRecoverable(wanted).catch(refuse)));
    const begun = await queries.recoverNotifications(wanted).catch(refuse);
    return sendAnswer(reply, { recovery_id: begun.recoveryId, ...matchedToWire(begun) }, 202);
  });
}

const matchedToWire = ({ matched, isMinimum }: Matched) => ({
  matched,
  ...(isMinimum && { matched_is_minimum: true as const }),
});

function refusal({ why, about }: Refused, { environment }: Caller): ApiError {
  if (why === 'too_long_ago')
    return invalidField('created_from', `must lie at most ${LONGEST_RECOVERY_DAYS} days ago.`);
  if (why === 'empty_span') return invalidField('created_from', 'must lie before now.');
  if (why === 'no_endpoint') return notRegistered(environment);
  if (why === 'disabled')
    return new ApiError('RECOVERY_DISABLED', 'Recoveries are switched off for you: write to us.');
  const message = `A recovery of the ${environment} environment is under way.`;
  const details = { environment, ...(about !== undefined && { recovery_id: about }) };
  return new ApiError('RECOVERY_UNDER_WAY', message, details);
}

export function getRecovery(app: FastifyInstance, queries: ApiQueries): void {
  const sendAnswer = answerer(recoveryResponseSchema);
  const { url, options } = idRoute('/v1/notifications/recoveries/{recovery_id}');

  app.get<{ Params: { readonly recovery_id: string } }>(url, options, async (request, reply) => {
    const found = await queries.recoveryProgress(request.params.recovery_id, request.caller);
    if (found === null)
      throw new ApiError('RECOVERY_NOT_FOUND', 'The recovery does not exist.', { field: 'recovery_id' });
    return sendAnswer(reply, toWire(found));
  });
}

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
    created_at: moment(one.createdMs),
    finished_at: isOver ? moment(one.lastMs) : null,
  };
}

function statusOf({ state, underWay }: RecoveryProgress): RecoveryBody['data']['status'] {
  if (state === 'running') return 'running';
  if (state === 'interrupted') return 'stopped';
  return underWay > 0 ? 'delivering' : 'finished';
}
