import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import fastifySwagger from '@fastify/swagger';
import fastifySwaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import openApi from '../../contracts/openapi.json';
import { NO_SUCH_ENDPOINT } from '../errors';

const LOGO = Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" width="420" height="40"><text x="0" y="27" fill="#fff" font-size="20" ' +
    'font-family="system-ui, sans-serif">Partner guide · Finance Quote Service</text></svg>',
);

/** The page sends no requests: fields for a key or another document are hidden, and the licence, which is no page. */
const HIDDEN =
  '.topbar form, .auth-wrapper, .authorization__btn, .info__license { display: none !important; }';

/** The `<style>` of the library's logo, added before ours replaces the logo: its hash is allowed, to keep a browser's console empty. */
const LOGO_STYLE = '.logo_small_svg__cls-2{fill:#fff}.logo_small_svg__cls-3{fill:#85ea2d}';
const LOGO_STYLE_HASH = createHash('sha256').update(LOGO_STYLE).digest('base64');

/** Paths of the page and its files. The library answers other paths, such as `/..%5c`, with statuses of its own. */
const PLAIN_PATH = /^(?:[\w/-]|\.(?!\.))*(?:\?|$)/;

export function getDocumentation(app: FastifyInstance): void {
  const serve = (path: string, type: string, text: string, headers: Record<string, string> = {}) =>
    app.get(path, (_request, reply) => reply.type(`${type}; charset=utf-8`).headers(headers).send(text));
  const { pages, markdown, sources } = readServedFiles();
  serve('/openapi.json', 'application/json', JSON.stringify(openApi));
  serve('/llms.txt', 'text/plain', LLMS_TEXT);
  for (const { path, text } of pages)
    serve(path, 'text/html', text, { 'Content-Security-Policy': pagePolicy(text) });
  for (const { path, text } of markdown) serve(path, 'text/markdown', text);
  for (const { path, text } of sources) serve(path, 'text/plain', text);
  void app.register(fastifySwagger, { mode: 'static', specification: { document: openApi as never } });
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
      theme: { title: 'Partner Finance Quote Service', css: [{ filename: 'hidden.css', content: HIDDEN }] },
      logo: { type: 'image/svg+xml', content: LOGO, href: '/docs/guide', target: '_self' },
    });
  });
}

const ROOT = join(__dirname, '../..');
const VERIFIERS = 'examples/verify-webhook';

/** Path on the public listener of each page of the repository that partners read; all of them are under `/docs/`. */
export const PAGES: Readonly<Record<string, string>> = {
  'docs/partner-guide.md': '/docs/guide',
  [`${VERIFIERS}/README.md`]: '/docs/verify-webhook',
  'clients/typescript/README.md': '/docs/typescript-client',
};

/** Other files in the folders of the verifiers are left there by compilers and interpreters. */
const SOURCE = /\.(mjs|py|php|java|go|mod)$/;

export interface ServedFile {
  readonly file: string;
  readonly path: string;
  readonly text: string;
}

/** The files made of a page by `npm run guide`: HTML, and Markdown whose links lead to served paths. Both are committed. */
export const renderedFile = (path: string, form: 'html' | 'md') =>
  `api/documentation/pages/${posix.basename(path)}.${form}`;

export const markdownPath = (path: string) => `${path}.md`;

function readServedFiles(): Readonly<Record<'pages' | 'markdown' | 'sources', ServedFile[]>> {
  const read = (file: string, path: string) => ({ file, path, text: readFileSync(join(ROOT, file), 'utf8') });
  const pages = Object.values(PAGES);
  return {
    pages: pages.map((path) => read(renderedFile(path, 'html'), path)),
    markdown: pages.map((path) => read(renderedFile(path, 'md'), markdownPath(path))),
    sources: sourceFiles().map(([file, path]) => read(file, path)),
  };
}

/** Allows a page its one style sheet, and no scripts. */
function pagePolicy(html: string): string {
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(html) ?? [];
  const hash = createHash('sha256').update(style).digest('base64');
  return `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

/** The source of the verifiers: file of the repository and path on the public listener. */
export function sourceFiles(): (readonly [file: string, path: string])[] {
  return readdirSync(join(ROOT, VERIFIERS), { withFileTypes: true })
    .filter((folder) => folder.isDirectory())
    .flatMap(({ name }) => readdirSync(join(ROOT, VERIFIERS, name)).map((file) => `${name}/${file}`))
    .filter((name) => SOURCE.test(name))
    .map((name) => [`${VERIFIERS}/${name}`, `/docs/verify-webhook/${name}`] as const);
}

/** `/llms.txt` (llmstxt.org): the documentation for programs. This process serves all of its links as Markdown, JSON or source. */
const LLMS_TEXT = `# Partner Finance Quote Service

> Finance offers for the shoppers of UK merchants: one call answers a quote with a ready-to-display summary, and signed webhooks tell a
> partner's server of every credit application. Calls need HTTPS and a key (\`Authorization: Bearer sk_test_…\`); none is needed to read this.

## Documentation

- [Partner guide](/docs/guide.md): first quote, fields, display rules, webhooks and how to verify them, what to do when something was missed, errors, rate limits
- [OpenAPI document](/openapi.json): every call, every field, every error, with examples
- [Verifying a webhook](/docs/verify-webhook.md): verifiers for Node, Python, PHP, Java and Go, with programs that try them
- [Typed client for TypeScript](/docs/typescript-client.md): Node, Deno, Bun and edge runtimes, without dependencies
`;
