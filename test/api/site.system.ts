import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { anchorsOf } from '../docs/tree';
import { useApi } from '../support/api';
import { launchBrowser } from '../support/browser';
import { needs } from '../support/needs';

/** The documentation site as partners get it: every link, and every page in a browser. */
const axe = readFileSync(createRequire(__filename).resolve('axe-core/axe.min.js'), 'utf8');

interface Served {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

const files = new Map<string, Served>();
const api = useApi(async () => {
  // Jest loads no ES modules.
  const build = join(__dirname, '../../site/build.ts');
  await promisify(execFile)(process.execPath, ['--import', 'tsx', build]);
  return {};
});

/** Targets of a page's links; none where it is no page. */
function linksOf({ type, text }: Served): string[] {
  if (type.startsWith('text/html'))
    return [...text.matchAll(/(?:href|src)="(?!data:)([^"]+)"/g)].map(([, target = '']) => target);
  if (!type.startsWith('text/markdown') && !text.startsWith('# Partner Finance')) return [];
  return [...text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/\]\(([^)\s]+)\)/g)].map(
    ([, target = '']) => target,
  );
}
const isLocal = (target: string) => !/^[a-z]+:/.test(target);
const resolved = (path: string, target: string) =>
  new URL(target.replaceAll('&amp;', '&'), `https://service.example${path}`);
const pages = () => [...files.keys()].filter((path) => files.get(path)?.type.startsWith('text/html'));

beforeAll(async () => {
  const waiting = ['/docs/', '/llms.txt'];
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    if (files.has(path)) continue;
    const { status, headers, text } = await api.fetchText(path);
    const file = { status, type: String(headers['content-type']), text };
    files.set(path, file);
    for (const target of linksOf(file).filter(isLocal)) waiting.push(resolved(path, target).pathname);
  }
});

test('every link is answered 200, and every anchor exists', () => {
  expect([...files].filter(([, { status }]) => status !== 200).map(([path]) => path)).toEqual([]);
  expect([...files.keys()]).toEqual(
    expect.arrayContaining([
      '/openapi.json',
      '/docs/guide.md',
      '/docs/guide/going-live',
      '/docs/typescript-client',
      '/docs/changelog.md',
      '/docs/verify-webhook/go/go.mod',
    ]),
  );
  const anchors = [...files].flatMap(([path, file]) =>
    linksOf(file)
      .filter((target) => isLocal(target) && target.includes('#'))
      .map((target) => resolved(path, target)),
  );
  // Those of the reference are drawn in the browser.
  const missing = anchors.filter(({ pathname, hash }) => {
    const { type, text } = files.get(pathname) ?? { type: '', text: '' };
    const id = decodeURIComponent(hash.slice(1));
    if (id.startsWith('tag/') && pathname === '/docs/reference') return false;
    return type.startsWith('text/html') ? !text.includes(`id="${id}"`) : !anchorsOf(text).includes(id);
  });
  expect(anchors.length).toBeGreaterThan(20);
  expect(missing.map(String)).toEqual([]);
});

test('no link leads to another site but to the standard', () => {
  const outside = [...files.values()].flatMap(linksOf).filter((target) => !isLocal(target));
  expect([...new Set(outside)]).toEqual(['https://www.standardwebhooks.com']);
});

test('each kind of file is served as what it is, under a policy without inline scripts', async () => {
  const typeOf = (path: string) => files.get(path)?.type;
  expect(typeOf('/llms.txt')).toBe('text/plain; charset=utf-8');
  expect(typeOf('/docs/guide.md')).toBe('text/markdown; charset=utf-8');
  const guide = `\n${files.get('/docs/guide.md')?.text}`;
  for (const chapter of ['# Partner guide', '## Recovery', '### Verify with a public key'])
    expect(guide).toContain(`\n${chapter}\n`);
  expect(guide).not.toMatch(/\]\((?!https:|#|\/)/);
  for (const path of pages()) expect(files.get(path)?.text).not.toMatch(/<script(?![^>]* src=)/);
  const { headers } = await api.fetchText('/docs/guide');
  const policy = String(headers['content-security-policy']);
  expect(policy).toContain("default-src 'none'; script-src 'self';");
  expect(policy).not.toContain('eval');
  const verifier = await api.fetchText('/docs/verify-webhook/node/verify-webhook.mjs');
  expect(verifier.headers).toMatchObject({
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
  });
  expect(verifier.text).toContain('timingSafeEqual');
});

test('the change log leaves out what is not for partners', () => {
  expect(files.get('/docs/changelog.md')?.text).toContain('### For partners');
  expect(files.get('/docs/changelog.md')?.text).not.toContain('### For operators');
});

needs('Chromium')('in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  /** A page that loads nothing from elsewhere; what the console says is collected. */
  async function open(path: string): Promise<[Page, string[]]> {
    const viewport = { width: 1280, height: 800 };
    const page = await browser.newPage({ ignoreHTTPSErrors: true, viewport });
    const said: string[] = [];
    page.on('pageerror', (error) => said.push(error.message));
    page.on('console', (message) => message.type() !== 'info' && said.push(message.text()));
    page.on('request', (request) => {
      if (!request.url().startsWith(`https://127.0.0.1:${api.port}/`) && !request.url().startsWith('data:'))
        said.push(request.url());
    });
    await page.goto(`https://127.0.0.1:${api.port}${path}`);
    // Named once the page's script runs.
    await page.locator('.VPSwitchAppearance:not([title=""])').first().waitFor({ state: 'attached' });
    if (path === '/docs/reference') await page.getByText('Test Request').first().waitFor();
    return [page, said];
  }

  test('every page fits a phone, is as axe wants it in light and dark, and says nothing in the console', async () => {
    const found: string[] = [];
    for (const path of pages()) {
      const [page, said] = await open(path);
      // As the developer's tools do: the policy is for what a page loads.
      const session = await page.context().newCDPSession(page);
      await session.send('Runtime.evaluate', { expression: axe });
      const look = async (width: number) => {
        const wide = await page.evaluate<number>('document.documentElement.scrollWidth');
        const faults = await page.evaluate<string[]>(
          `axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
            violations.map(({ id, nodes }) => id + ' ' + nodes[0].html))`,
        );
        if (wide > width) faults.push(`${wide} wide`);
        found.push(...faults.map((fault) => `${path} ${width}: ${fault}`));
      };
      await look(1280);
      await page.setViewportSize({ width: 375, height: 800 });
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.locator('html.dark').waitFor({ state: 'attached' });
      await page.evaluate('Promise.all(document.getAnimations().map(({ finished }) => finished))');
      await look(375);
      found.push(...said.map((fault) => `${path}: ${fault}`));
      await page.close();
    }
    expect(found).toEqual([]);
  }, 300_000);

  test('the search finds a chapter and a call', async () => {
    const [page] = await open('/docs/');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('searchbox').fill('partially_refunded');
    await page
      .getByRole('option', { name: /each state/ })
      .first()
      .waitFor();
    await page.getByRole('searchbox').fill('public keys of webhooks');
    await page
      .getByRole('option', { name: /List the public keys/ })
      .first()
      .click();
    await page.waitForURL('**/docs/reference#tag/notifications/GET/v1/webhook-keys');
    await page.close();
  });

  test('"Test Request" calls the service with a sandbox key', async () => {
    const [page, said] = await open('/docs/reference');
    await page.getByPlaceholder('Token').first().fill(api.keys.test);
    await page.getByRole('link', { name: 'List the public keys of webhooks' }).first().click();
    await page.getByRole('button', { name: /Test Request.*\/v1\/webhook-keys/ }).click();
    const answer = page.waitForResponse('**/v1/webhook-keys');
    await page.getByRole('button', { name: /^Send/ }).first().click();
    expect((await answer).status()).toBe(200);
    expect(said).toEqual([]);
    await page.close();
  });
});
