import type { FastifyInstance, FastifyRequest } from 'fastify';
import { readApplicationRequest, createdApplicationSchema } from '../../contracts/credit-application';
import type {
  CreateApplicationAnswer,
  NewApplication,
  warnOfCrowdedQuote,
} from '../../db/applications/create';
import type { Application } from '../../db/applications/read';
import { describeOperatorEvent } from '../../domain/operator-event';
import { warnOutOfScope } from '../applications/out-of-scope';
import { createdToWire } from '../applications/to-wire';
import { ApiError } from '../errors';
import type { ApiMetrics } from '../metrics';
import { bodyOf } from '../plugins/body';
import { answerer } from '../serializer';

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
