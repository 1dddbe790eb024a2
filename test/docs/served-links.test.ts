import type { Browser } from 'playwright-core';
import { startTestApi, type TestApi } from '../support/api';
import { launchBrowser } from '../support/browser';
import { needs } from '../support/needs';

/** Every link of the pages that a real listener serves to partners leads somewhere, and so does every anchor. */
jest.setTimeout(60_000);

let api: TestApi;
let files: Map<string, { readonly status: number; readonly html: string }>;

const linksOf = (html: string) =>
  [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, target = '']) => target.replaceAll('&amp;', '&'));
const isLocal = (target: string) => !/^[a-z]+:/.test(target);
const resolved = (path: string, target: string) => new URL(target, `https://service.example${path}`);

beforeAll(async () => {
  api = await startTestApi();
  files = await crawl(['/docs/guide', '/docs/']);
});
afterAll(() => api.close());

/** Follows all links from these paths. @returns what each path answered; `html` is empty where that is no page. */
async function crawl(paths: readonly string[]): Promise<typeof files> {
  const found: typeof files = new Map();
  const waiting = [...paths];
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    if (found.has(path)) continue;
    const { status, headers, text } = await api.fetchText(path);
    const html = String(headers['content-type']).startsWith('text/html') ? text : '';
    found.set(path, { status, html });
    for (const target of linksOf(html).filter(isLocal)) waiting.push(resolved(path, target).pathname);
  }
  return found;
}

test('every link is answered 200', () => {
  expect([...files].filter(([, { status }]) => status !== 200).map(([path]) => path)).toEqual([]);
  expect([...files.keys()]).toEqual(
    expect.arrayContaining([
      '/openapi.json',
      '/docs/typescript-client',
      '/docs/verify-webhook',
      '/docs/verify-webhook/go/go.mod',
    ]),
  );
});

test('every anchor exists', () => {
  const anchors = [...files].flatMap(([path, { html }]) =>
    linksOf(html)
      .filter((target) => isLocal(target) && target.includes('#'))
      .map((target) => resolved(path, target)),
  );
  expect(anchors.length).toBeGreaterThan(10);
  const missing = anchors.filter(
    ({ pathname, hash }) => !files.get(pathname)?.html.includes(`id="${decodeURIComponent(hash.slice(1))}"`),
  );
  expect(missing.map(String)).toEqual([]);
});

test('no link leads to another site but to the standard', () => {
  const outside = [...files.values()]
    .flatMap(({ html }) => linksOf(html))
    .filter((target) => !isLocal(target));
  expect([...new Set(outside)]).toEqual(['https://www.standardwebhooks.com']);
});

needs('Chromium')('in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test.each(['/docs/guide', '/docs/verify-webhook', '/docs/typescript-client'])(
    '%s fits a phone: it takes no sideways scrolling',
    async (path) => {
      const page = await browser.newPage({
        ignoreHTTPSErrors: true,
        viewport: { width: 375, height: 800 },
      });
      await page.goto(`https://127.0.0.1:${api.port}${path}`);
      const width = await page.evaluate<number>('document.documentElement.scrollWidth');
      expect(width).toBe(375);
    },
  );
});

test('the verifiers are served as plain text', async () => {
  const { headers, text } = await api.fetchText('/docs/verify-webhook/node/verify-webhook.mjs');
  expect(headers['content-type']).toBe('text/plain; charset=utf-8');
  expect(headers['x-content-type-options']).toBe('nosniff');
  expect(text).toContain('timingSafeEqual');
});

describe('for programs that read in place of people', () => {
  const linksIn = (markdown: string) =>
    [...markdown.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target).filter(isLocal);
  const anchorsIn = (markdown: string) =>
    [...markdown.matchAll(/^#{1,6} +(.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    );

  test('/llms.txt lists the guide, which is served as Markdown, and everything that it names is there', async () => {
    const list = await api.fetchText('/llms.txt');
    expect([list.status, list.headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8']);
    expect(linksIn(list.text)).toContain('/docs/guide.md');
    const found = new Map<string, { readonly status: number; readonly text: string }>();
    const waiting = linksIn(list.text).map((target) => resolved('/llms.txt', target));
    const missing: string[] = [];
    for (let link = waiting.shift(); link !== undefined; link = waiting.shift()) {
      const { pathname: path, hash } = link;
      if (!found.has(path)) {
        const answer = await api.fetchText(path);
        found.set(path, answer);
        if (path.endsWith('.md')) {
          expect(answer.headers['content-type']).toBe('text/markdown; charset=utf-8');
          // Without code, in which a link is none.
          const prose = answer.text.replaceAll(/^```[\s\S]*?^```$/gm, '');
          waiting.push(...linksIn(prose).map((target) => resolved(path, target)));
        }
      }
      const { status, text } = found.get(path) ?? { status: 0, text: '' };
      if (status !== 200) missing.push(path);
      if (hash !== '' && !anchorsIn(text).includes(decodeURIComponent(hash.slice(1))))
        missing.push(path + hash);
    }
    expect(missing).toEqual([]);
    expect(found.size).toBeGreaterThan(10);
  });

  test('the Markdown is the guide, with nothing left out', async () => {
    const { text } = await api.fetchText('/docs/guide.md');
    for (const chapter of ['# Partner guide', '## When something was missed', '### Verify with a public key'])
      expect(text).toContain(`\n${chapter}\n`.replace('\n# P', '# P'));
    expect(text).not.toMatch(/\]\((?!https:|#|\/)/);
  });
});
