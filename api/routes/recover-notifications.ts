import type { FastifyInstance } from 'fastify';
import {
  LONGEST_RECOVERY_DAYS,
  readRecoverRequest,
  recoverDryRunSchema,
  recoverResponseSchema,
} from '../../contracts/notification-recovery';
import type { WantedRecovery } from '../../db/notifications/recovery';
import { Refused } from '../../db/refused';
import { ApiError, notRegistered } from '../errors';
import type { Caller } from '../plugins/authenticate';
import { bodyOf } from '../plugins/body';
import { answerer } from '../serializer';

export interface RecoverNotificationsDeps {
  /** `recoveryId`: null for a dry run. @throws Refused */
  readonly recoverNotifications: (
    wanted: WantedRecovery,
  ) => Promise<{ readonly recoveryId: string | null; readonly matched: number }>;
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
    const wanted = { owner, keyId, since, until, longestDays, dryRun };
    const { recoveryId, matched } = await deps.recoverNotifications(wanted).catch((error: unknown) => {
      throw error instanceof Refused ? refusal(error, caller) : error;
    });
    if (recoveryId === null) return sendCount(reply, { matched });
    return sendAnswer(reply, { recovery_id: recoveryId, matched }, 202);
  });
}

const emptySpan = (message: string, field: string) => new ApiError('INVALID_REQUEST', message, { field });

function refusal({ why, about }: Refused, { environment }: Caller): ApiError {
  if (why === 'too_long_ago')
    return emptySpan(`created_from must lie at most ${LONGEST_RECOVERY_DAYS} days ago.`, 'created_from');
  if (why === 'empty_span') return emptySpan('created_from must lie before now.', 'created_from');
  if (why === 'no_endpoint') return notRegistered(environment);
  if (why === 'disabled')
    return new ApiError('RECOVERY_DISABLED', 'Recoveries are switched off for you: write to us.');
  const message = `A recovery of the ${environment} environment is under way.`;
  const details = { environment, ...(about !== undefined && { recovery_id: about }) };
  return new ApiError('RECOVERY_UNDER_WAY', message, details);
}
