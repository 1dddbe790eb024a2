import type { Browser } from 'playwright-core';
import { useApi } from '../support/api';
import { launchBrowser } from '../support/browser';
import { needs } from '../support/needs';
import { anchorsOf } from './tree';

/** Every link of the pages that a real listener serves to partners, HTML and Markdown, leads somewhere, and so does every anchor. */
jest.setTimeout(60_000);

interface Served {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

const api = useApi();
const files = new Map<string, Served>();

/** Targets of a page's links; none where it is no page. */
function linksOf({ type, text }: Served): string[] {
  const links = type.startsWith('text/html')
    ? text.matchAll(/(?:href|src)="([^"]+)"/g)
    : /^text\/(markdown|plain)/.test(type)
      ? text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/\]\(([^)\s]+)\)/g)
      : [];
  return [...links].map(([, target = '']) => target.replaceAll('&amp;', '&'));
}
const isLocal = (target: string) => !/^[a-z]+:/.test(target);
const resolved = (path: string, target: string) => new URL(target, `https://service.example${path}`);

beforeAll(async () => {
  const waiting = ['/docs/guide', '/docs/', '/llms.txt'];
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    if (files.has(path)) continue;
    const { status, headers, text } = await api.fetchText(path);
    // The verifiers are code, in which a link is none.
    const type = path.startsWith('/docs/verify-webhook/') ? 'code' : String(headers['content-type']);
    const file = { status, type, text };
    files.set(path, file);
    for (const target of linksOf(file).filter(isLocal)) waiting.push(resolved(path, target).pathname);
  }
});

test('every link is answered 200', () => {
  expect([...files].filter(([, { status }]) => status !== 200).map(([path]) => path)).toEqual([]);
  const some = [
    '/openapi.json',
    '/docs/guide.md',
    '/docs/typescript-client',
    '/docs/verify-webhook/go/go.mod',
  ];
  expect([...files.keys()]).toEqual(expect.arrayContaining(some));
});

test('every anchor exists', () => {
  const anchors = [...files].flatMap(([path, file]) =>
    linksOf(file)
      .filter((target) => isLocal(target) && target.includes('#'))
      .map((target) => resolved(path, target)),
  );
  expect(anchors.length).toBeGreaterThan(20);
  const missing = anchors.filter(({ pathname, hash }) => {
    const { type, text } = files.get(pathname) ?? { type: '', text: '' };
    const id = decodeURIComponent(hash.slice(1));
    return type.startsWith('text/html') ? !text.includes(`id="${id}"`) : !anchorsOf(text).includes(id);
  });
  expect(missing.map(String)).toEqual([]);
});

test('no link of a page leads to another site but to the standard', () => {
  const pages = [...files.values()].filter(({ type }) => type.startsWith('text/html'));
  const outside = pages.flatMap(linksOf).filter((target) => !isLocal(target));
  expect([...new Set(outside)]).toEqual(['https://www.standardwebhooks.com']);
});

test('each kind of file is served as what it is; the Markdown of the guide leaves nothing out', async () => {
  const typeOf = (path: string) => files.get(path)?.type;
  expect(typeOf('/llms.txt')).toBe('text/plain; charset=utf-8');
  expect(typeOf('/docs/guide.md')).toBe('text/markdown; charset=utf-8');
  const guide = `\n${files.get('/docs/guide.md')?.text}`;
  for (const chapter of ['# Partner guide', '## When something was missed', '### Verify with a public key'])
    expect(guide).toContain(`\n${chapter}\n`);
  expect(guide).not.toMatch(/\]\((?!https:|#|\/)/);
  const verifier = await api.fetchText('/docs/verify-webhook/node/verify-webhook.mjs');
  expect(verifier.headers['content-type']).toBe('text/plain; charset=utf-8');
  expect(verifier.headers['x-content-type-options']).toBe('nosniff');
  expect(verifier.text).toContain('timingSafeEqual');
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
      const viewport = { width: 375, height: 800 };
      const page = await browser.newPage({ ignoreHTTPSErrors: true, viewport });
      await page.goto(`https://127.0.0.1:${api.port}${path}`);
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBe(375);
    },
  );
});
