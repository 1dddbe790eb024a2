import type { FastifyRequest, FastifyInstance } from 'fastify';
import {
  readApplicationRequest,
  createdApplicationSchema,
  lenderEventResponseSchema,
  MOST_MINUTES_AHEAD,
  readLenderEvent,
  applicationResponseSchema,
  type ApplicationBody,
  type CreatedApplicationBody,
  type LenderEventBody,
} from '../../contracts/credit-application';
import type {
  CreateApplicationAnswer,
  NewApplication,
  warnOfCrowdedQuote,
} from '../../db/applications/create';
import type { Application, ApplicationStory, LenderEvent } from '../../db/applications/applications';
import type { LenderEventAnswer, NewLenderEvent } from '../../db/applications/lender-events';
import type { KeyBinding } from '../../db/keys/service-keys';
import type { Verdict } from '../../domain/application-states';
import { formatPence } from '../../domain/money';
import { describeOperatorEvent } from '../../domain/operator-event';
import { ApiError } from '../errors';
import { answerer } from '../answers';
import { bodyOf } from '../body';
import type { ApiMetrics } from '../observe';

/** The path parameter of an application's routes. */
export interface ApplicationPath {
  Params: { readonly credit_application_id: string };
}

const APPLICATION_ID = /^app_[0-9A-HJKMNP-TV-Z]{26}$/;

export const noSuchApplication = () =>
  new ApiError('APPLICATION_NOT_FOUND', 'The application does not exist.', {
    field: 'credit_application_id',
  });

/** The application that a path names. @throws ApiError when it can be none: then nobody is asked. */
export function applicationIdOf({ credit_application_id: id }: ApplicationPath['Params']): string {
  if (!APPLICATION_ID.test(id)) throw noSuchApplication();
  return id;
}

/**
 * Logs that a service key was used for what belongs to another lender or environment. The caller must not be able to tell
 * such a thing from one that does not exist; operators should know that an integration uses the wrong key, or tries others'
 * ids.
 */
export function warnOutOfScope(
  request: FastifyRequest,
  wanted: Readonly<Record<string, string | null>>,
): void {
  const { keyId, lender, environment } = request.service;
  request.log.warn(
    { requestId: request.id, keyId, keyLender: lender, keyEnvironment: environment, ...wanted },
    'a service key was used for what belongs to another lender or environment: answered 404',
  );
}

export interface CreateCreditApplicationDeps {
  readonly createApplication: (wanted: NewApplication) => Promise<CreateApplicationAnswer>;
  readonly warnOfCrowdedQuote: (application: Application) => ReturnType<typeof warnOfCrowdedQuote>;
  readonly metrics: Pick<ApiMetrics, 'crowdedQuoteApplications'>;
}

/** `POST /internal/v1/credit-applications`, for the keyed part of the internal listener. */
export function createCreditApplication(app: FastifyInstance, deps: CreateCreditApplicationDeps): void {
  const sendAnswer = answerer(createdApplicationSchema);

  app.post('/internal/v1/credit-applications', async (request, reply) => {
    const wanted = bodyOf(readApplicationRequest, request.body);
    const answer = await deps.createApplication({
      ...wanted,
      service: request.service,
      requestId: request.id,
    });
    if ('ofOthers' in answer && answer.ofOthers) {
      const { lender, quoteId, creditProduct } = wanted;
      warnOutOfScope(request, { lender, quoteId, creditProduct });
    }
    if (answer.kind !== 'created') throw refusal(answer);
    if (answer.isNew) await noteCrowdedQuote(request, answer.application);
    return sendAnswer(reply, createdToWire(answer.application));
  });

  /** The application is committed: its answer does not depend on this. */
  async function noteCrowdedQuote(request: FastifyRequest, application: Application): Promise<void> {
    try {
      const warning = await deps.warnOfCrowdedQuote(application);
      if (warning === null) return;
      deps.metrics.crowdedQuoteApplications.inc();
      const { kind, partnerId, environment, details } = warning.event;
      const text = describeOperatorEvent(kind, details);
      if (warning.isNew) request.log.warn({ kind, partnerId, environment, ...details }, text);
    } catch (error) {
      request.log.warn({ err: error }, 'the applications of a quote could not be counted');
    }
  }
}

function refusal(answer: Exclude<CreateApplicationAnswer, { kind: 'created' }>): ApiError {
  switch (answer.kind) {
    case 'exists':
      return new ApiError('APPLICATION_EXISTS', "The lender's reference stands for another application.", {
        field: 'lender_reference',
        credit_application_id: answer.application.applicationId,
      });
    case 'lender_not_found':
      return new ApiError('LENDER_NOT_FOUND', 'The lender does not exist.', { field: 'lender' });
    case 'reference_format':
      return new ApiError('INVALID_LENDER_REFERENCE', "lender_reference is not of the lender's form.", {
        field: 'lender_reference',
      });
    case 'quote_not_found':
      return new ApiError('QUOTE_NOT_FOUND', 'The quote does not exist.', { field: 'service_quote_id' });
    case 'product_not_quoted':
      return new ApiError('PRODUCT_NOT_QUOTED', 'The quote offered no such product of your lender.', {
        field: 'credit_product',
      });
    case 'amounts_not_quoted':
      return new ApiError('AMOUNTS_NOT_QUOTED', 'These amounts were not quoted.', { field: 'loan_amount' });
    case 'merchant_reference_differs':
      return new ApiError('MERCHANT_REFERENCE_MISMATCH', "merchant_reference is not the quote's.", {
        field: 'merchant_reference',
      });
  }
}

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

export interface GetCreditApplicationDeps {
  /** An application of this lender and environment; for all others null. */
  readonly findApplication: (applicationId: string, scope: KeyBinding) => Promise<ApplicationStory | null>;
  readonly applicationExists: (applicationId: string) => Promise<boolean>;
}

/** `GET /internal/v1/credit-applications/{credit_application_id}`. */
export function getCreditApplication(app: FastifyInstance, deps: GetCreditApplicationDeps): void {
  const sendAnswer = answerer(applicationResponseSchema);

  app.get<ApplicationPath>(
    '/internal/v1/credit-applications/:credit_application_id',
    async (request, reply) => {
      const applicationId = applicationIdOf(request.params);
      const story = await deps.findApplication(applicationId, request.service);
      if (story === null) {
        if (await deps.applicationExists(applicationId)) warnOutOfScope(request, { applicationId });
        throw noSuchApplication();
      }
      return sendAnswer(reply, applicationToWire(story));
    },
  );
}

/** The wire form of an application that has been opened: the same however often it is asked for. */
export function createdToWire(application: Application): CreatedApplicationBody['data'] {
  return {
    credit_application_id: application.applicationId,
    environment: application.environment,
    partner_id: application.partnerId,
    merchant_id: application.merchantId,
    service_quote_id: application.quoteId,
    merchant_reference: application.merchantReference,
    lender: application.lender,
    lender_reference: application.lenderReference,
    loan_amount: formatPence(application.loanPence),
    customer_deposit: formatPence(application.depositPence),
    credit_product: application.creditProduct,
    created_at: application.createdAt.toISOString(),
  };
}

function toldToWire(event: LenderEvent) {
  return {
    lender_event_id: event.lenderEventId,
    status: event.status,
    occurred_at: event.occurredAt.toISOString(),
    received_at: event.receivedAt.toISOString(),
  };
}

export function lenderEventToWire(event: LenderEvent): LenderEventBody['data'] {
  return {
    credit_application_id: event.applicationId,
    ...toldToWire(event),
    outcome: event.verdict,
    application_status: event.stateAfter,
  };
}

/** The outcome of an event by now: one that waited may have been applied, or the application may have passed it by. */
function outcomeNow({ verdict, appliedAt, waitsUntil }: LenderEvent): Verdict {
  if (verdict !== 'waiting') return verdict;
  if (appliedAt !== null) return 'applied';
  return waitsUntil === null ? 'not_applied' : 'waiting';
}

export function applicationToWire({
  application,
  events,
  notifications,
}: ApplicationStory): ApplicationBody['data'] {
  return {
    ...createdToWire(application),
    status: application.state,
    updated_at: application.updatedAt.toISOString(),
    lender_events: events.map((event) => ({
      ...toldToWire(event),
      outcome: outcomeNow(event),
      previous_status: event.previousState,
      sequence: event.sequence,
      applied_at: event.appliedAt?.toISOString() ?? null,
      waits_until: event.waitsUntil?.toISOString() ?? null,
    })),
    notifications: notifications.map((one) => ({
      notification_id: one.notificationId,
      event_id: one.eventId,
      event_type: one.eventType,
      sequence: one.sequence,
      state: one.state,
      end_reason: one.endReason,
      created_at: one.createdAt.toISOString(),
      delivered_at: one.deliveredAt?.toISOString() ?? null,
    })),
  };
}
