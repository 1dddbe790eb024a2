import type { FastifyInstance } from 'fastify';
import { applicationResponseSchema, type ApplicationBody } from '../../contracts/credit-application-response';
import type { ApplicationStory } from '../../db/applications/read';
import { applicationIdOf, noSuchApplication, type ApplicationPath } from '../applications/application-path';
import { applicationToWire } from '../applications/to-wire';
import { serializer } from '../serializer';

export interface GetCreditApplicationDeps {
  readonly findApplication: (applicationId: string) => Promise<ApplicationStory | null>;
}

/** `GET /internal/v1/credit-applications/{credit_application_id}` (design §5). */
export function getCreditApplication(app: FastifyInstance, deps: GetCreditApplicationDeps): void {
  const serialize = serializer<ApplicationBody>(applicationResponseSchema);

  app.get<ApplicationPath>(
    '/internal/v1/credit-applications/:credit_application_id',
    async (request, reply) => {
      const story = await deps.findApplication(applicationIdOf(request.params));
      if (story === null) throw noSuchApplication();
      return reply.type('application/json; charset=utf-8').send(serialize(applicationToWire(story)));
    },
  );
}
