import type { FastifyInstance } from 'fastify';
import { readApplicationRequest } from '../../contracts/credit-application';
import { createdApplicationSchema } from '../../contracts/credit-application-response';
import type { CreateApplicationAnswer, NewApplication } from '../../db/applications/create';
import { warnOutOfScope } from '../applications/out-of-scope';
import { createdToWire } from '../applications/to-wire';
import { ApiError } from '../errors';
import { bodyOf } from '../plugins/body';
import { answerer } from '../serializer';

export interface CreateCreditApplicationDeps {
  readonly createApplication: (wanted: NewApplication) => Promise<CreateApplicationAnswer>;
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
      warnOutOfScope(request, { lender: wanted.lender, quoteId: wanted.quoteId });
    }
    if (answer.kind !== 'created') throw refusal(answer);
    return sendAnswer(reply, createdToWire(answer.application));
  });
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
    case 'nothing_fitted':
      return new ApiError('NOTHING_QUOTED', 'No product fitted when the quote was made.', {
        field: 'service_quote_id',
      });
    case 'product_not_quoted':
      return new ApiError('PRODUCT_NOT_QUOTED', 'The product did not fit when the quote was made.', {
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
