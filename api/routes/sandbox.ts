import type { FastifyInstance } from 'fastify';
import { readSimulateApplication, readSimulateEvent } from '../../contracts/credit-application';
import type { ErrorCode } from '../../contracts/errors';
import { partnerApplicationSchema } from '../../contracts/webhook-event';
import type { SimulateAnswer } from '../../db/applications/simulate';
import { STORIES, statesAfter } from '../../domain/application-states';
import { answerer } from '../answers';
import { bodyOf, knownQuery } from '../body';
import { ApiError, NO_SUCH_ENDPOINT } from '../errors';
import { idRoute } from '../observe';
import type { ApiQueries } from '../queries';
import { noSuchApplication, partnerApplicationToWire, type ApplicationPath } from './credit-applications';

/** Lets a partner play the lender of its own applications. For a live key there is no simulator. */
export function simulateApplications(app: FastifyInstance, queries: ApiQueries): void {
  const sendAnswer = answerer(partnerApplicationSchema);
  const { url, options } = idRoute('/v1/sandbox/credit-applications/{credit_application_id}/events');
  app.addHook('onRequest', async ({ caller }) => {
    if (caller.environment !== 'sandbox') throw NO_SUCH_ENDPOINT;
  });
  knownQuery(app);

  app.post('/v1/sandbox/credit-applications', async (request, reply) => {
    const wanted = bodyOf(readSimulateApplication, request.body);
    const answer = await queries.simulateApplication({
      quoteId: wanted.service_quote_id,
      creditProduct: wanted.credit_product ?? null,
      story: wanted.story === undefined ? [] : STORIES[wanted.story],
      partnerId: request.caller.partnerId,
      requestId: request.id,
    });
    if (answer.kind !== 'created') throw refusal(answer.kind);
    return sendAnswer(reply, partnerApplicationToWire(answer.application), 201);
  });
  app.post<ApplicationPath>(url, options, async (request, reply) => {
    const { status } = bodyOf(readSimulateEvent, request.body);
    const { credit_application_id: applicationId } = request.params;
    const { partnerId } = request.caller;
    const answer = await queries.simulateEvent({ applicationId, status, partnerId, requestId: request.id });
    if (answer.kind === 'applied') return sendAnswer(reply, partnerApplicationToWire(answer.application));
    if (answer.kind === 'not_applicable') {
      const message = `An application that is ${answer.state} does not become ${status} now.`;
      throw new ApiError('EVENT_NOT_APPLICABLE', message, { may_follow: statesAfter(answer.state) });
    }
    if (answer.kind === 'application_not_found') throw noSuchApplication();
    throw new ApiError('SIMULATION_LIMIT_REACHED', 'The application has 100 events: open another one.');
  });
}

type Refusal = readonly [ErrorCode, message: string, field?: string];

const REFUSALS: Readonly<Record<Exclude<SimulateAnswer['kind'], 'created'>, Refusal>> = {
  quote_not_found: ['QUOTE_NOT_FOUND', 'The quote does not exist.', 'service_quote_id'],
  product_not_quoted: ['PRODUCT_NOT_QUOTED', 'The quote offered no such product.', 'credit_product'],
  limit_reached: ['SIMULATION_LIMIT_REACHED', 'The quote has 20 simulated applications: make another one.'],
  no_reference_left: [
    'SIMULATION_LIMIT_REACHED',
    "Your simulated applications have every reference of this lender's form: choose another credit_product.",
  ],
};

function refusal(kind: keyof typeof REFUSALS): ApiError {
  const [code, message, field] = REFUSALS[kind];
  return new ApiError(code, message, field === undefined ? undefined : { field });
}
