import type { Browser } from 'playwright-core';
import { useApi } from '../support/api';
import { launchBrowser } from '../support/browser';
import { fileNeeds } from '../support/needs';

fileNeeds('Chromium');

jest.setTimeout(60_000);

const api = useApi();
let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
}, 60_000);
afterAll(() => browser.close());

test.each(['/docs', '/docs/guide'])('%s opens without a word in the console of the browser', async (path) => {
  const page = await browser.newPage({ ignoreHTTPSErrors: true });
  const said: string[] = [];
  page.on('pageerror', (error) => said.push(error.message));
  page.on('console', (message) => said.push(`${message.text()} ${message.location().url}`));
  await page.goto(`https://127.0.0.1:${api.port}${path}`);
  await page.getByRole('heading', { level: 2 }).first().waitFor();
  if (path === '/docs') await page.locator('.opblock-summary').first().waitFor();
  expect(said).toEqual([]);
  await page.close();
});
