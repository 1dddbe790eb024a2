import type { FastifyRequest } from 'fastify';
import { simulateApplicationRequest, simulateEventRequest } from '../../contracts/credit-application';
import { partnerApplicationExamples, partnerApplicationSchema } from '../../contracts/partner-application';
import type { SimulateAnswer } from '../../db/applications/simulate';
import { STORIES } from '../../domain/application-states';
import { answerer } from '../answers';
import { bodyOf } from '../body';
import { refused, type ApiError } from '../errors';
import { operation } from '../operation';
import type { WithQueries } from '../queries';
import { partnerApplicationToWire } from './credit-applications';

/** Lets a partner play the lender of its own applications. */
const simulateCreditApplication = operation({
  call: 'POST /v1/sandbox/credit-applications',
  id: 'simulateCreditApplication',
  tag: 'Sandbox',
  summary: 'Open a simulated application',
  description:
    'Under a sandbox key you play the lender: this opens an application from a quote of yours, and you are sent its events ' +
    'like those of any other. At most 20 for a quote. Under a live key it does not exist.',
  sandboxOnly: true,
  body: simulateApplicationRequest,
  answers: {
    201: [
      'The application, after all events of its story.',
      partnerApplicationSchema,
      partnerApplicationExamples,
    ],
  },
  codes: ['QUOTE_NOT_FOUND', 'PRODUCT_NOT_QUOTED', 'SIMULATION_LIMIT_REACHED'],
  wrong: [{ story: 'lost' }, { service_quote_id: null }],
  handler: ({ queries }: WithQueries) => {
    const sendAnswer = answerer(partnerApplicationSchema);
    return async (request, reply) => {
      const wanted = bodyOf(simulateApplicationRequest.read, request.body);
      const answer = await queries.simulateApplication({
        quoteId: wanted.service_quote_id,
        creditProduct: wanted.credit_product ?? null,
        story: wanted.story === undefined ? [] : STORIES[wanted.story],
        ...caller(request),
        requestId: request.id,
      });
      if (answer.kind !== 'created') throw REFUSALS[answer.kind]();
      return sendAnswer(reply, partnerApplicationToWire(answer.application), 201);
    };
  },
});

const caller = ({ caller: { partnerId, keyId } }: FastifyRequest) => ({ partnerId, keyId });

const REFUSALS: Readonly<Record<Exclude<SimulateAnswer['kind'], 'created'>, () => ApiError>> = {
  quote_not_found: () => refused('QUOTE_NOT_FOUND'),
  product_not_quoted: () => refused('PRODUCT_NOT_QUOTED'),
  limit_reached: () => refused('SIMULATION_LIMIT_REACHED', 'quote'),
  no_reference_left: () => refused('SIMULATION_LIMIT_REACHED', 'references'),
};

const simulateEvent = operation({
  call: 'POST /v1/sandbox/credit-applications/{credit_application_id}/events',
  id: 'simulateEvent',
  tag: 'Sandbox',
  summary: 'Report an event of a simulated application',
  description: 'Brings it into another state, as its lender would.',
  sandboxOnly: true,
  body: simulateEventRequest,
  answers: {
    200: ['The application in its new state.', partnerApplicationSchema, partnerApplicationExamples],
  },
  codes: ['APPLICATION_NOT_FOUND', 'EVENT_NOT_APPLICABLE', 'SIMULATION_LIMIT_REACHED'],
  wrong: [{ status: 'lost' }, { status: null }],
  handler: ({ queries }: WithQueries) => {
    const sendAnswer = answerer(partnerApplicationSchema);
    return async (request, reply) => {
      const { status } = bodyOf(simulateEventRequest.read, request.body);
      const { credit_application_id: applicationId } = request.params;
      const answer = await queries.simulateEvent({
        applicationId,
        status,
        ...caller(request),
        requestId: request.id,
      });
      if (answer.kind === 'applied') return sendAnswer(reply, partnerApplicationToWire(answer.application));
      if (answer.kind === 'not_applicable') throw refused('EVENT_NOT_APPLICABLE', answer.state, status);
      if (answer.kind === 'application_not_found') throw refused('APPLICATION_NOT_FOUND');
      throw refused('SIMULATION_LIMIT_REACHED', 'events');
    };
  },
});

export const sandboxOperations = [simulateCreditApplication, simulateEvent];
