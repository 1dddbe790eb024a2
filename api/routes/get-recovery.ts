import type { Tenant } from '../../domain/tenant';
import type { FastifyInstance } from 'fastify';
import {
  recoveryResponseSchema,
  type RECOVERY_STATUSES,
  type RecoveryBody,
} from '../../contracts/notification-recovery';
import { ID_PATTERNS } from '../../contracts/fields';
import type { RecoveryProgress } from '../../db/notifications/recovery';
import { ApiError } from '../errors';
import { moment } from '../notifications/to-wire';
import { idRoute } from '../plugins/route-name';
import { answerer } from '../serializer';

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
