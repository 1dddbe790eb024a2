import type { FastifyInstance } from 'fastify';
import { applicationResponseSchema } from '../../contracts/credit-application';
import type { ApplicationStory } from '../../db/applications/read';
import type { KeyBinding } from '../../db/keys/service-keys';
import { applicationIdOf, noSuchApplication, type ApplicationPath } from '../applications/application-path';
import { warnOutOfScope } from '../applications/out-of-scope';
import { applicationToWire } from '../applications/to-wire';
import { answerer } from '../serializer';

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
