import { createHash } from 'node:crypto';
import fastifySwagger from '@fastify/swagger';
import fastifySwaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { LLMS_TEXT } from '../documentation/llms-text';
import { pagePolicy, readServedFiles } from '../documentation/served-files';
import openApi from '../../contracts/openapi.json';
import { NO_SUCH_ENDPOINT } from '../errors';

/** In place of the framework's own; it leads to the guide. */
const LOGO = Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" width="420" height="40"><text x="0" y="27" fill="#fff" font-size="20" ' +
    'font-family="system-ui, sans-serif">Partner guide · Finance Quote Service</text></svg>',
);

/** The page sends nothing: no field for a key, none for another document, and no link to a licence that is no page. */
const HIDDEN =
  '.topbar form, .auth-wrapper, .authorization__btn, .info__license { display: none !important; }';

/**
 * The one `<style>` that the page's script adds: of the library's own logo, which ours replaces a moment later. Allowed by its
 * hash, so that a browser's console stays empty.
 */
const LOGO_STYLE = '.logo_small_svg__cls-2{fill:#fff}.logo_small_svg__cls-3{fill:#85ea2d}';
const LOGO_STYLE_HASH = createHash('sha256').update(LOGO_STYLE).digest('base64');

/** Paths of the page and its files. The library that serves them answers others, such as `/..%5c`, with statuses of its own. */
const PLAIN_PATH = /^(?:[\w/-]|\.(?!\.))*(?:\?|$)/;

/** `GET /openapi.json`, the page made from it at `/docs`, the partner guide, what the guide links, and `/llms.txt`. None needs a key. */
export function getDocumentation(app: FastifyInstance): void {
  const text = JSON.stringify(openApi);
  app.get('/openapi.json', (_request, reply) => reply.type('application/json; charset=utf-8').send(text));
  app.get('/llms.txt', (_request, reply) => reply.type('text/plain; charset=utf-8').send(LLMS_TEXT));
  const { pages, markdown, sources } = readServedFiles();
  for (const { path, text: html } of pages) {
    const policy = pagePolicy(html);
    app.get(path, (_request, reply) =>
      reply.type('text/html; charset=utf-8').header('Content-Security-Policy', policy).send(html),
    );
  }
  for (const { path, text: page } of markdown) {
    app.get(path, (_request, reply) => reply.type('text/markdown; charset=utf-8').send(page));
  }
  for (const { path, text: source } of sources) {
    app.get(path, (_request, reply) => reply.type('text/plain; charset=utf-8').send(source));
  }
  void app.register(fastifySwagger, {
    mode: 'static',
    specification: { document: openApi as never },
  });
  void app.register(async (page) => {
    page.addHook('onRequest', (request, _reply, done) => {
      if (PLAIN_PATH.test(request.url)) done();
      else done(NO_SUCH_ENDPOINT);
    });
    await page.register(fastifySwaggerUi, {
      routePrefix: '/docs',
      staticCSP: true,
      transformStaticCSP: (policy) =>
        policy.replace("style-src 'self' https:", `style-src 'self' 'sha256-${LOGO_STYLE_HASH}'`),
      uiConfig: { docExpansion: 'list', defaultModelsExpandDepth: 0, supportedSubmitMethods: [] },
      theme: {
        title: 'Partner Finance Quote Service',
        css: [{ filename: 'hidden.css', content: HIDDEN }],
      },
      logo: { type: 'image/svg+xml', content: LOGO, href: '/docs/guide', target: '_self' },
    });
  });
}
