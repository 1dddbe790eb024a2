import type { FastifyRequest } from 'fastify';
import {
  applicationRequest,
  applicationResponseSchema,
  createdApplicationSchema,
  lenderEventRequest,
  lenderEventResponseSchema,
  MOST_MINUTES_AHEAD,
  type ApplicationBody,
  type CreatedApplicationBody,
} from '../../contracts/credit-application';
import { ID_PATTERNS } from '../../contracts/fields';
import {
  partnerApplicationExamples,
  partnerApplicationSchema,
  type PartnerApplicationBody,
} from '../../contracts/partner-application';
import type { CreateApplicationAnswer } from '../../db/applications/create';
import type { Application, ApplicationHistory, LenderEvent } from '../../db/applications/applications';
import type { PartnerApplication } from '../../db/applications/applications';
import type { ApplicationState, Verdict } from '../../domain/application-states';
import { formatPence } from '../../domain/money';
import { describeOperatorEvent } from '../../domain/operator-event';
import { answerer, toTimestamp } from '../answers';
import { bodyOf } from '../body';
import { invalidField, refused, type ApiError } from '../errors';
import type { ApiMetrics } from '../observe';
import { operation } from '../operation';
import type { WithQueries } from '../queries';

const APPLICATION_ID = new RegExp(`^${ID_PATTERNS.credit_application_id}$`);

function applicationIdOf({ credit_application_id: id }: { readonly credit_application_id: string }): string {
  if (!APPLICATION_ID.test(id)) throw refused('APPLICATION_NOT_FOUND');
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

const tag = 'Credit applications';

interface CreateDeps extends WithQueries {
  readonly metrics: Pick<ApiMetrics, 'crowdedQuoteApplications'>;
}

const createCreditApplication = operation({
  call: 'POST /internal/v1/credit-applications',
  id: 'createCreditApplication',
  tag,
  summary: 'Open a credit application',
  description:
    'From a finance link, whole or by its parameters. What is applied for must have been quoted: with a product, that product of ' +
    'the lender for these amounts; without one, the amounts of any product of the lender that fitted or, when one fitted, of the ' +
    'summary’s link. The same lender and ' +
    'reference again, with the same content, answers the same. The partner is told (`credit_application.created`).',
  query: 'ignored',
  body: applicationRequest,
  answers: { 200: ['It is open, now or since an earlier request.', createdApplicationSchema] },
  codes: [
    'INVALID_LENDER_REFERENCE',
    'LENDER_NOT_FOUND',
    'QUOTE_NOT_FOUND',
    'PRODUCT_NOT_QUOTED',
    'APPLICATION_EXISTS',
    'AMOUNTS_NOT_QUOTED',
    'MERCHANT_REFERENCE_MISMATCH',
  ],
  wrong: [
    { lender: 'Lender A' },
    { lender: null },
    { loan_amount: '900.001' },
    { quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B7' },
  ],
  handler: ({ queries, metrics }: CreateDeps) => {
    const sendAnswer = answerer(createdApplicationSchema);
    return async (request, reply) => {
      const wanted = bodyOf(applicationRequest.read, request.body);
      const { service, id: requestId } = request;
      const answer = await queries.createApplication({ ...wanted, service, requestId });
      if ('ofOthers' in answer && answer.ofOthers) {
        const { lender, quoteId, creditProduct } = wanted;
        warnOutOfScope(request, { lender, quoteId, creditProduct });
      }
      if (answer.kind !== 'created') throw refusalOf(answer);
      if (answer.isNew) await noteCrowdedQuote(request, answer.application);
      return sendAnswer(reply, createdToWire(answer.application));
    };

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
  },
});

function refusalOf(answer: Exclude<CreateApplicationAnswer, { kind: 'created' }>): ApiError {
  if (answer.kind === 'exists') return refused('APPLICATION_EXISTS', answer.application.applicationId);
  return refused(CODES[answer.kind]);
}

const CODES = {
  lender_not_found: 'LENDER_NOT_FOUND',
  reference_format: 'INVALID_LENDER_REFERENCE',
  quote_not_found: 'QUOTE_NOT_FOUND',
  product_not_quoted: 'PRODUCT_NOT_QUOTED',
  amounts_not_quoted: 'AMOUNTS_NOT_QUOTED',
  merchant_reference_differs: 'MERCHANT_REFERENCE_MISMATCH',
} as const;

const getCreditApplication = operation({
  call: 'GET /internal/v1/credit-applications/{credit_application_id}',
  id: 'getCreditApplication',
  tag,
  summary: 'Read a credit application with its history',
  description: 'For an integration that has lost an answer of ours, or is asked where an application stands.',
  query: 'ignored',
  anyId: true,
  answers: {
    200: [
      'The application, all that its lender told, and all that its partner is told.',
      applicationResponseSchema,
    ],
  },
  codes: ['APPLICATION_NOT_FOUND'],
  handler: ({ queries }: WithQueries) => {
    const sendAnswer = answerer(applicationResponseSchema);
    return async (request, reply) => {
      const applicationId = applicationIdOf(request.params);
      const history = await queries.findApplication(applicationId, request.service);
      if (history === null) {
        if (await queries.applicationExists(applicationId, request.service))
          warnOutOfScope(request, { applicationId });
        throw refused('APPLICATION_NOT_FOUND');
      }
      return sendAnswer(reply, applicationToWire(history));
    };
  },
});

interface RecordDeps extends WithQueries {
  readonly metrics: Pick<ApiMetrics, 'lenderContradictions'>;
}

/** A release is taken back for minutes at least. */
const RETRY_NEWER_STATE_SECONDS = 60;

const recordLenderEvent = operation({
  call: 'POST /internal/v1/credit-applications/{credit_application_id}/lender-events',
  id: 'recordLenderEvent',
  tag,
  summary: "Record a lender's status",
  description:
    'The same `lender_event_id` again, with the same content, answers the same. Every event is stored; `outcome` says what came of ' +
    'it. Send them as they come: steps may be left out, and one that comes early waits for what is missing, for ten minutes unless ' +
    'configured otherwise. Then it is applied without.',
  query: 'ignored',
  anyId: true,
  body: lenderEventRequest,
  answers: { 200: ['It is stored, now or since an earlier request.', lenderEventResponseSchema] },
  codes: [
    'APPLICATION_NOT_FOUND',
    'LENDER_EVENT_EXISTS',
    'LENDER_EVENT_LIMIT_REACHED',
    'APPLICATION_STATE_UNKNOWN',
  ],
  wrong: [{ status: 'lost' }, { lender_event_id: null }],
  handler: ({ queries, metrics }: RecordDeps) => {
    const sendAnswer = answerer(lenderEventResponseSchema);
    return async (request, reply) => {
      const applicationId = applicationIdOf(request.params);
      const sent = bodyOf(lenderEventRequest.read, request.body);
      const answer = await queries.recordLenderEvent({
        applicationId,
        lenderEventId: sent.lender_event_id,
        status: sent.status,
        occurredAt: sent.occurred_at,
        service: request.service,
        requestId: request.id,
      });
      if (answer.kind === 'too_far_ahead')
        throw invalidField('occurred_at', `is more than ${MOST_MINUTES_AHEAD} minutes in the future.`);
      if (answer.kind === 'application_not_found') {
        if (answer.ofOthers) warnOutOfScope(request, { applicationId });
        throw refused('APPLICATION_NOT_FOUND');
      }
      if (answer.kind === 'exists') throw refused('LENDER_EVENT_EXISTS');
      if (answer.kind === 'limit_reached') throw refused('LENDER_EVENT_LIMIT_REACHED');
      if (answer.kind === 'newer_state') {
        const { state } = answer;
        request.log.warn({ requestId: request.id, applicationId, state }, 'a newer release knows this state');
        void reply.header('Retry-After', RETRY_NEWER_STATE_SECONDS);
        throw refused('APPLICATION_STATE_UNKNOWN', state);
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
    };
  },
});

export const lenderOperations = [createCreditApplication, getCreditApplication, recordLenderEvent];

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

function applicationToWire(history: ApplicationHistory): ApplicationBody['data'] {
  const { application, events, notifications } = history;
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

export const getApplicationForPartner = operation({
  call: 'GET /v1/credit-applications/{credit_application_id}',
  id: 'getCreditApplication',
  tag: 'Applications',
  summary: 'Read a credit application',
  description: 'The state that it is in now and each of its events, for a receiver that has missed some.',
  answers: { 200: ['The application.', partnerApplicationSchema, partnerApplicationExamples] },
  codes: ['APPLICATION_NOT_FOUND'],
  handler: ({ queries }: WithQueries) => {
    const sendAnswer = answerer(partnerApplicationSchema);
    return async ({ params, caller }, reply) => {
      const found = await queries.findPartnerApplication(params.credit_application_id, caller);
      if (found === null) throw refused('APPLICATION_NOT_FOUND');
      return sendAnswer(reply, partnerApplicationToWire(found));
    };
  },
});

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
    created_at: toTimestamp(one.createdMs),
    updated_at: toTimestamp(one.updatedMs),
    events: one.events.map((event) => ({
      sequence: event.sequence,
      event_id: event.eventId,
      notification_id: event.notificationId,
      event_type: event.eventType,
      status: event.eventType.slice('credit_application.'.length) as ApplicationState,
      previous_status: event.previousStatus,
      occurred_at: toTimestamp(event.occurredMs),
    })),
  };
}
