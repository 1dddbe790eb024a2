import type { FastifyInstance } from 'fastify';
import { ID_PATTERNS } from '../../contracts/fields';
import {
  LONGEST_RECOVERY_DAYS,
  readRecoverRequest,
  recoverDryRunSchema,
  recoverResponseSchema,
  recoveryResponseSchema,
  type RECOVERY_STATUSES,
  type RecoveryBody,
} from '../../contracts/notification-recovery';
import type { WantedRecovery, RecoveryProgress } from '../../db/notifications/recovery';
import { Refused } from '../../db/refused';
import type { Tenant } from '../../domain/tenant';
import type { Caller } from '../checks';
import { ApiError, notRegistered } from '../errors';
import { answerer } from '../answers';
import { bodyOf } from '../body';
import { idRoute } from '../observe';
import { moment } from './notifications';

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

export interface GetRecoveryDeps {
  readonly recoveryProgress: (recoveryId: string, owner: Tenant) => Promise<RecoveryProgress | null>;
}

interface RecoveryPath {
  Params: { readonly recovery_id: string };
}

const { url, options } = idRoute('/v1/notifications/recoveries/{recovery_id}', ID_PATTERNS);

/** `GET /v1/notifications/recoveries/{recovery_id}`. */
export function getRecovery(app: FastifyInstance, deps: GetRecoveryDeps): void {
  const sendAnswer = answerer(recoveryResponseSchema);

  app.get<RecoveryPath>(url, options, async (request, reply) => {
    const found = await deps.recoveryProgress(request.params.recovery_id, request.caller);
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
    matched: one.matched,
    resent,
    delivered,
    // Also what a later recovery has taken over since: it could only do so because this one had failed with it.
    failed: Math.max(0, resent - delivered - underWay),
    created_at: moment(one.createdMs),
    finished_at: isOver ? moment(one.lastMs) : null,
  };
}

function statusOf({ state, underWay }: RecoveryProgress): (typeof RECOVERY_STATUSES)[number] {
  if (state === 'running') return 'running';
  if (state === 'interrupted') return 'stopped';
  return underWay > 0 ? 'delivering' : 'finished';
}
