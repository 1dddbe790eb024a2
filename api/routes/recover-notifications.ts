import type { FastifyInstance } from 'fastify';
import {
  LONGEST_RECOVERY_DAYS,
  readRecoverRequest,
  recoverDryRunSchema,
  recoverResponseSchema,
} from '../../contracts/notification-recovery';
import type { PartnerRecovery, WantedRecovery } from '../../db/notifications/recover-for-partner';
import { ApiError, notRegistered } from '../errors';
import type { Caller } from '../plugins/authenticate';
import { bodyOf } from '../plugins/body';
import { answerer } from '../serializer';

export interface RecoverNotificationsDeps {
  readonly recoverNotifications: (wanted: WantedRecovery) => Promise<PartnerRecovery>;
}

/** `POST /v1/notifications/recover`. */
export function recoverNotifications(app: FastifyInstance, deps: RecoverNotificationsDeps): void {
  const sendCount = answerer(recoverDryRunSchema);
  const sendAnswer = answerer(recoverResponseSchema);

  app.post('/v1/notifications/recover', async (request, reply) => {
    const { caller, body } = request;
    const { created_from: since, created_to: until, dry_run: dryRun } = bodyOf(readRecoverRequest, body);
    if (since >= until) throw emptySpan('created_to must lie after created_from.', 'created_to');
    const { keyId, partnerId, environment } = caller;
    const owner = { partnerId, environment };
    const longestDays = LONGEST_RECOVERY_DAYS;
    const answer = await deps.recoverNotifications({ owner, keyId, since, until, longestDays, dryRun });
    if (answer.kind === 'counted') return sendCount(reply, { matched: answer.matched });
    if (answer.kind !== 'begun') throw refusal(answer, caller);
    const { recoveryId, matched } = answer;
    return sendAnswer(reply, { recovery_id: recoveryId, matched }, 202);
  });
}

const emptySpan = (message: string, field: string) => new ApiError('INVALID_REQUEST', message, { field });

function refusal(
  answer: Exclude<PartnerRecovery, { kind: 'counted' | 'begun' }>,
  { environment }: Caller,
): ApiError {
  switch (answer.kind) {
    case 'too_long_ago':
      return emptySpan(`created_from must lie at most ${LONGEST_RECOVERY_DAYS} days ago.`, 'created_from');
    case 'empty_span':
      return emptySpan('created_from must lie before now.', 'created_from');
    case 'no_endpoint':
      return notRegistered(environment);
    case 'disabled':
      return new ApiError('RECOVERY_DISABLED', 'Recoveries are switched off for you: write to us.');
    case 'under_way': {
      const message = `A recovery of the ${environment} environment is under way.`;
      const details = { environment, ...(answer.recoveryId !== '' && { recovery_id: answer.recoveryId }) };
      return new ApiError('RECOVERY_UNDER_WAY', message, details);
    }
  }
}
