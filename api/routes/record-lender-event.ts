import type { FastifyInstance } from 'fastify';
import {
  lenderEventResponseSchema,
  MOST_MINUTES_AHEAD,
  readLenderEvent,
} from '../../contracts/credit-application';
import type { LenderEventAnswer, NewLenderEvent } from '../../db/applications/record-lender-event';
import { lenderEventToWire } from '../applications/to-wire';
import { ApiError } from '../errors';
import { applicationIdOf, noSuchApplication, type ApplicationPath } from '../applications/application-path';
import { warnOutOfScope } from '../applications/out-of-scope';
import { bodyOf } from '../plugins/body';
import { answerer } from '../serializer';

export interface RecordLenderEventDeps {
  readonly recordLenderEvent: (wanted: NewLenderEvent) => Promise<LenderEventAnswer>;
  readonly now: () => Date;
}

/** `POST /internal/v1/credit-applications/{credit_application_id}/lender-events`. */
export function recordLenderEvent(app: FastifyInstance, deps: RecordLenderEventDeps): void {
  const sendAnswer = answerer(lenderEventResponseSchema);

  app.post<ApplicationPath>(
    '/internal/v1/credit-applications/:credit_application_id/lender-events',
    async (request, reply) => {
      const applicationId = applicationIdOf(request.params);
      const told = bodyOf(readLenderEvent, request.body);
      if (told.occurred_at.getTime() > deps.now().getTime() + MOST_MINUTES_AHEAD * 60_000) {
        const message = `occurred_at is more than ${MOST_MINUTES_AHEAD} minutes in the future.`;
        throw new ApiError('INVALID_REQUEST', message, { field: 'occurred_at' });
      }
      const answer = await deps.recordLenderEvent({
        applicationId,
        lenderEventId: told.lender_event_id,
        status: told.status,
        occurredAt: told.occurred_at,
        service: request.service,
        requestId: request.id,
      });
      if (answer.kind === 'application_not_found') {
        if (answer.ofOthers) warnOutOfScope(request, { applicationId });
        throw noSuchApplication();
      }
      if (answer.kind === 'exists') {
        throw new ApiError('LENDER_EVENT_EXISTS', "The lender's event id stands for another event.", {
          field: 'lender_event_id',
        });
      }
      return sendAnswer(reply, lenderEventToWire(answer.event));
    },
  );
}
