import fastifySwagger from '@fastify/swagger';
import fastifySwaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { openApiDocument } from '../../contracts/openapi';

/** `GET /openapi.json` and the page made from it at `/docs`; no key is needed to read them. */
export function getDocumentation(app: FastifyInstance): void {
  const document = openApiDocument();
  const text = JSON.stringify(document);
  app.get('/openapi.json', (_request, reply) => reply.type('application/json; charset=utf-8').send(text));
  void app.register(fastifySwagger, {
    mode: 'static',
    specification: { document: document as never },
  });
  void app.register(fastifySwaggerUi, {
    routePrefix: '/docs',
    staticCSP: true,
    uiConfig: { docExpansion: 'list', defaultModelsExpandDepth: 0, supportedSubmitMethods: [] },
    theme: { title: 'Partner Finance Quote Service' },
  });
}
