import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import scalar from '@scalar/fastify-api-reference';
import Fastify from 'fastify';
import { defineConfig } from 'vitepress';
import openApi from '../contracts/openapi.json' with { type: 'json' };
import { anchorOf, sitePages } from './pages.js';

/** VitePress, set up for pages that `build.ts` composes: one sidebar, one search, a policy without inline scripts. */
const operations = [
  ...Object.entries(openApi.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      hash: `${method.toUpperCase()}${path}`,
    })),
  ),
  ...Object.entries(openApi.webhooks).map(([name, { post }]) => ({
    ...post,
    hash: `webhook/POST/${name.toLowerCase()}`,
  })),
].map(({ hash, summary, description, tags: [tag = ''] }) => ({
  tag,
  text: summary,
  description,
  link: `/reference#tag/${tag.toLowerCase()}/${hash}`,
}));

// Scalar's package for Fastify brings the reference as one file, without the hundreds of packages that it was made from.
const server = Fastify();
await server.register(scalar, { routePrefix: '/', configuration: { url: '/openapi.json' } });
const { payload } = await server.inject('/js/scalar.js');
const reference = join(process.env['SITE_SOURCE'] ?? '', 'scalar.js');
writeFileSync(reference, payload);

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#3451b2"/>' +
  '<text x="16" y="24" font-family="sans-serif" font-size="22" font-weight="700" text-anchor="middle" fill="#fff">£</text></svg>';

const { guide, others } = sitePages();
const titled = ({ title, path }: { title: string; path: string }) => ({ text: title, link: path });

// oxlint-disable-next-line import/no-default-export -- VitePress asks for one.
export default defineConfig({
  lang: 'en-GB',
  title: 'Finance Quote Service',
  description: 'Finance offers for your checkout: guide and API reference.',
  base: '/docs/',
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }]],
  cleanUrls: true,
  // Puts what would be an inline script into a file.
  metaChunk: true,
  markdown: {
    anchor: { slugify: anchorOf },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  vite: { resolve: { alias: [{ find: /^scalar\.js/, replacement: reference }] } },
  themeConfig: {
    outline: [2, 3],
    sidebar: [
      { text: 'Guide', items: guide.map(titled) },
      { text: 'API reference', items: [{ text: 'Overview, and your key', link: '/reference' }] },
      ...openApi.tags.map(({ name }) => ({
        text: `API: ${name}`,
        items: operations.filter(({ tag }) => tag === name),
      })),
      { text: 'Code', items: others.map(titled) },
    ],
    search: {
      provider: 'local',
      options: {
        // The reference is drawn in the browser; what is searched are the titles and descriptions of its operations.
        _render: (text, env, markdown) =>
          env.relativePath === 'reference.md'
            ? operations
                .map(({ link, text: title, description }) => {
                  const [, hash = ''] = link.split('#');
                  return `<h2>${title} <a href="#${hash}"></a></h2><p>${markdown.utils.escapeHtml(description)}</p>`;
                })
                .join('\n')
            : markdown.render(text, env),
      },
    },
  },
  transformHtml: (html, _id, { siteConfig }) =>
    html.replaceAll(/<script id="[\w-]+">([\s\S]*?)<\/script>/g, (_tag, code: string) => {
      const name = `assets/${createHash('sha256').update(code).digest('hex').slice(0, 16)}.js`;
      writeFileSync(join(siteConfig.outDir, name), code);
      return `<script src="/docs/${name}"></script>`;
    }),
});
