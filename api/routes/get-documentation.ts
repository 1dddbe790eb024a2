import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import openApi from '../../contracts/openapi.json';

/** Made by site/build.ts. Without it the contract is served alone. */
const SITE = join(__dirname, '../site');

/** Nothing comes from elsewhere. Scalar's reference and the colours of code need inline styles; scripts are files, and none is compiled from text. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.woff2': 'font/woff2',
};

/** The service in the contract and in the guide's commands. */
const ANY_SERVICE = openApi.servers[0]?.url ?? '';

/** @param publicUrl where partners reach the service: `https://…`, without a slash at the end */
export function getDocumentation(app: FastifyInstance, publicUrl: string): void {
  const contract = JSON.stringify(openApi).replaceAll(ANY_SERVICE, publicUrl);
  app.get('/openapi.json', (_request, reply) => reply.type('application/json; charset=utf-8').send(contract));
  app.get('/llms.txt', (_request, reply) => reply.type('text/plain; charset=utf-8').send(LLMS_TEXT));
  app.get('/docs', (_request, reply) => reply.redirect('/docs/'));
  for (const file of filesOfSite()) {
    const read = readFileSync(join(SITE, file));
    // A page and its script have the same text.
    const named = read.includes(ANY_SERVICE);
    const body = named ? Buffer.from(read.toString().replaceAll(ANY_SERVICE, publicUrl)) : read;
    const headers = {
      'content-type': TYPES[extname(file)] ?? 'text/plain; charset=utf-8',
      'content-security-policy': POLICY,
      // Names of assets have a hash of their content.
      'cache-control':
        file.startsWith('assets/') && !named ? 'public, max-age=31536000, immutable' : 'no-cache',
      vary: 'accept-encoding',
    };
    let zipped: Promise<Buffer> | undefined;
    app.get(`/docs/${file.replace(/(^|\/)index\.html$|\.html$/, '$1')}`, async (request, reply) => {
      void reply.headers(headers);
      if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return body;
      zipped ??= promisify(gzip)(body);
      void reply.header('content-encoding', 'gzip');
      return zipped;
    });
  }
}

function filesOfSite(): string[] {
  if (!existsSync(SITE)) return [];
  return readdirSync(SITE, { recursive: true, encoding: 'utf8' }).filter((file) => extname(file) !== '');
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
- [Change log](/docs/changelog.md): what partners notice
`;
