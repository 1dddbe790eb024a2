import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  applicationResponseSchema,
  createdApplicationSchema,
  lenderEventResponseSchema,
  MOST_MINUTES_AHEAD,
  readApplicationRequest,
  readLenderEvent,
  type ApplicationBody,
  type CreatedApplicationBody,
} from '../../contracts/credit-application';
import type { InternalErrorCode } from '../../contracts/errors';
import { partnerApplicationSchema, type PartnerApplicationBody } from '../../contracts/webhook-event';
import type { CreateApplicationAnswer } from '../../db/applications/create';
import type { Application, ApplicationStory, LenderEvent } from '../../db/applications/applications';
import type { PartnerApplication } from '../../db/applications/applications';
import type { ApplicationState, Verdict } from '../../domain/application-states';
import { formatPence } from '../../domain/money';
import { describeOperatorEvent } from '../../domain/operator-event';
import { answerer } from '../answers';
import { bodyOf } from '../body';
import { ApiError, invalidField } from '../errors';
import { idRoute, type ApiMetrics } from '../observe';
import type { ApiQueries } from '../queries';
import { moment } from './notifications';

export interface ApplicationPath {
  Params: { readonly credit_application_id: string };
}

const APPLICATION_ID = /^app_[0-9A-HJKMNP-TV-Z]{26}$/;

export const noSuchApplication = () =>
  new ApiError('APPLICATION_NOT_FOUND', 'The application does not exist.', {
    field: 'credit_application_id',
  });

function applicationIdOf({ credit_application_id: id }: ApplicationPath['Params']): string {
  if (!APPLICATION_ID.test(id)) throw noSuchApplication();
  return id;
}

// Logs that a service key was used for another lender or environment, which the caller is not told.
function warnOutOfScope(request: FastifyRequest, wanted: Readonly<Record<string, string | null>>): void {
  const { keyId, lender, environment } = request.service;
  request.log.warn(
    { requestId: request.id, keyId, keyLender: lender, keyEnvironment: environment, ...wanted },
    'a service key was used for what belongs to another lender or environment: answered 404',
  );
}

export function createCreditApplication(
  app: FastifyInstance,
  queries: ApiQueries,
  metrics: Pick<ApiMetrics, 'crowdedQuoteApplications'>,
): void {
  const sendAnswer = answerer(createdApplicationSchema);

  app.post('/internal/v1/credit-applications', async (request, reply) => {
    const wanted = bodyOf(readApplicationRequest, request.body);
    const { service, id: requestId } = request;
    const answer = await queries.createApplication({ ...wanted, service, requestId });
    if ('ofOthers' in answer && answer.ofOthers) {
      const { lender, quoteId, creditProduct } = wanted;
      warnOutOfScope(request, { lender, quoteId, creditProduct });
    }
    if (answer.kind !== 'created') throw refusal(answer);
    if (answer.isNew) await noteCrowdedQuote(request, answer.application);
    return sendAnswer(reply, createdToWire(answer.application));
  });

  /** The application is committed, so a failure here must not change its answer. */
  async function noteCrowdedQuote(request: FastifyRequest, application: Application): Promise<void> {
    try {
      const warning = await queries.warnOfCrowdedQuote(application);
      if (warning === null) return;
      metrics.crowdedQuoteApplications.inc();
      const { kind, partnerId, environment, details } = warning.event;
      const text = describeOperatorEvent(kind, details);
      if (warning.isNew) request.log.warn({ kind, partnerId, environment, ...details }, text);
    } catch (error) {
      request.log.warn({ err: error }, 'the applications of a quote could not be counted');
    }
  }
}

type Refusal = Exclude<CreateApplicationAnswer, { kind: 'created' }>;

const MEANT: Readonly<Record<Refusal['kind'], readonly [InternalErrorCode, message: string, field: string]>> =
  {
    exists: [
      'APPLICATION_EXISTS',
      "The lender's reference stands for another application.",
      'lender_reference',
    ],
    lender_not_found: ['LENDER_NOT_FOUND', 'The lender does not exist.', 'lender'],
    reference_format: [
      'INVALID_LENDER_REFERENCE',
      "lender_reference is not of the lender's form.",
      'lender_reference',
    ],
    quote_not_found: ['QUOTE_NOT_FOUND', 'The quote does not exist.', 'service_quote_id'],
    product_not_quoted: [
      'PRODUCT_NOT_QUOTED',
      'The quote offered no such product of your lender.',
      'credit_product',
    ],
    amounts_not_quoted: ['AMOUNTS_NOT_QUOTED', 'These amounts were not quoted.', 'loan_amount'],
    merchant_reference_differs: [
      'MERCHANT_REFERENCE_MISMATCH',
      "merchant_reference is not the quote's.",
      'merchant_reference',
    ],
  };

function refusal(answer: Refusal): ApiError {
  const [code, message, field] = MEANT[answer.kind];
  const other = answer.kind === 'exists' && { credit_application_id: answer.application.applicationId };
  return new ApiError(code, message, { field, ...other });
}

const PATH = '/internal/v1/credit-applications/:credit_application_id';

export function recordLenderEvent(
  app: FastifyInstance,
  queries: ApiQueries,
  metrics: Pick<ApiMetrics, 'lenderContradictions'>,
): void {
  const sendAnswer = answerer(lenderEventResponseSchema);

  app.post<ApplicationPath>(`${PATH}/lender-events`, async (request, reply) => {
    const applicationId = applicationIdOf(request.params);
    const sent = bodyOf(readLenderEvent, request.body);
    if (sent.occurred_at.getTime() > Date.now() + MOST_MINUTES_AHEAD * 60_000)
      throw invalidField('occurred_at', `is more than ${MOST_MINUTES_AHEAD} minutes in the future.`);
    const answer = await queries.recordLenderEvent({
      applicationId,
      lenderEventId: sent.lender_event_id,
      status: sent.status,
      occurredAt: sent.occurred_at,
      service: request.service,
      requestId: request.id,
    });
    if (answer.kind === 'application_not_found') {
      if (answer.ofOthers) warnOutOfScope(request, { applicationId });
      throw noSuchApplication();
    }
    if (answer.kind === 'exists') {
      const message = "The lender's event id stands for another event.";
      throw new ApiError('LENDER_EVENT_EXISTS', message, { field: 'lender_event_id' });
    }
    for (const { kind, partnerId, environment, details } of answer.contradictions) {
      const { lender, from, to } = details as Record<'lender' | 'from' | 'to', string>;
      metrics.lenderContradictions.inc({ lender, from, to });
      request.log.warn(
        { requestId: request.id, kind, partnerId, environment, ...details },
        describeOperatorEvent(kind, details),
      );
    }
    return sendAnswer(reply, {
      credit_application_id: answer.event.applicationId,
      ...eventToWire(answer.event),
      outcome: answer.event.verdict,
      application_status: answer.event.stateAfter,
    });
  });
}

export function getCreditApplication(app: FastifyInstance, queries: ApiQueries): void {
  const sendAnswer = answerer(applicationResponseSchema);

  app.get<ApplicationPath>(PATH, async (request, reply) => {
    const applicationId = applicationIdOf(request.params);
    const story = await queries.findApplication(applicationId, request.service);
    if (story === null) {
      if (await queries.applicationExists(applicationId)) warnOutOfScope(request, { applicationId });
      throw noSuchApplication();
    }
    return sendAnswer(reply, applicationToWire(story));
  });
}

function createdToWire(application: Application): CreatedApplicationBody['data'] {
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

function eventToWire(event: LenderEvent) {
  return {
    lender_event_id: event.lenderEventId,
    status: event.status,
    occurred_at: event.occurredAt.toISOString(),
    received_at: event.receivedAt.toISOString(),
  };
}

/** The present outcome of an event. One that waited may have been applied, or may never be. */
function outcomeNow({ verdict, appliedAt, waitsUntil }: LenderEvent): Verdict {
  if (verdict !== 'waiting') return verdict;
  if (appliedAt !== null) return 'applied';
  return waitsUntil === null ? 'not_applied' : 'waiting';
}

function applicationToWire(story: ApplicationStory): ApplicationBody['data'] {
  const { application, events, notifications } = story;
  return {
    ...createdToWire(application),
    status: application.state,
    updated_at: application.updatedAt.toISOString(),
    lender_events: events.map((event) => ({
      ...eventToWire(event),
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

export function getApplicationForPartner(app: FastifyInstance, queries: ApiQueries): void {
  const sendAnswer = answerer(partnerApplicationSchema);
  const { url, options } = idRoute('/v1/credit-applications/{credit_application_id}');

  app.get<ApplicationPath>(url, options, async ({ params, caller }, reply) => {
    const found = await queries.findPartnerApplication(params.credit_application_id, caller);
    if (found === null) throw noSuchApplication();
    return sendAnswer(reply, partnerApplicationToWire(found));
  });
}

export function partnerApplicationToWire(one: PartnerApplication): PartnerApplicationBody['data'] {
  return {
    credit_application_id: one.applicationId,
    service_quote_id: one.quoteId,
    merchant_reference: one.merchantReference,
    merchant_id: one.merchantId,
    lender: one.lender,
    lender_reference: one.lenderReference,
    status: one.state,
    credit_product: one.creditProduct,
    created_at: moment(one.createdMs),
    updated_at: moment(one.updatedMs),
    events: one.events.map((event) => ({
      sequence: event.sequence,
      event_id: event.eventId,
      notification_id: event.notificationId,
      event_type: event.eventType,
      status: event.eventType.slice('credit_application.'.length) as ApplicationState,
      previous_status: event.previousStatus,
      occurred_at: moment(event.occurredMs),
    })),
  };
}
