import type { Browser, Locator, Page } from 'playwright-core';
import { Agent } from 'undici';
import { freePort } from '../../dev/ports';
import type { PageServer } from '../../dev/pages';
import { seedDemo } from '../../dev/seed';
import { startShop } from '../../dev/shop';
import { createResolver } from '../../outbound/names';
import { createSender, type Sender } from '../../outbound/sender';
import { startTestApi, type TestApi } from '../support/api';
import { launchBrowser } from '../support/browser';
import { startTestWorker, type TestWorker } from '../support/delivery';
import { fileNeeds } from '../support/needs';
import { addEndpoint, newKeyRingText } from '../../testbed/notifications';
import { randomTaskQueue, testTemporal } from '../support/temporal';
import { createTestTls } from '../../testbed/tls';

const keys = newKeyRingText();
export let api: TestApi;
let sender: Sender;
let worker: TestWorker;
export let shop: PageServer;
let browser: Browser;
export let page: Page;
export let dispatcher: Agent;
export let trusted: string;
const trouble: string[] = [];

/** The demo shop in a real browser, in front of the real service: the scene of a file's tests. */
export function useShop(): void {
  fileNeeds('Chromium');
  jest.setTimeout(180_000);
  const temporal = testTemporal();

  beforeAll(async () => {
    const tls = await createTestTls();
    const port = await freePort();
    trusted = tls.ca;
    dispatcher = new Agent({ connect: { ca: trusted } });
    api = await startTestApi();
    const { ca, partnerId } = api;
    const partner = { apiUrl: `https://127.0.0.1:${api.port}`, ca, partnerId, apiKey: api.keys.test };
    const merchants = ['M000001', 'M000004'].map((id) => ({ id, shows: `what ${id} shows` }));
    shop = await startShop({ port, tls, partner, liveKey: api.keys.live, merchants });
    await seedDemo(api.databaseUrl, undefined);
    await addEndpoint(api.database, { partnerId, url: `${shop.url}/webhooks`, keyRing: keys });
    sender = createSender({
      allowedCidrs: ['127.0.0.0/8'],
      allowedPorts: [port],
      resolver: createResolver([]),
      hosts: new Map([['localhost', ['127.0.0.1']]]),
      ca: trusted,
      timeouts: { headersMs: 1_000 },
      now: Date.now,
    });
    const local = { ENVIRONMENT: 'development', WEBHOOK_LOCAL_TARGETS: `localhost:${port}` };
    worker = await startTestWorker({
      databaseUrl: api.databaseUrl,
      temporal,
      taskQueue: randomTaskQueue(),
      receiver: { ca: trusted, environment: local },
      keys,
      // One attempt, which is given a second: what fails has failed for good, as after three days elsewhere.
      environment: { DELIVERY_LADDER_SECONDS: '0' },
      send: (wanted) => sender.send(wanted),
    });
    browser = await launchBrowser();
    page = await browser.newPage({ ignoreHTTPSErrors: true, reducedMotion: 'reduce' });
    page.on('pageerror', (error) => trouble.push(error.message));
    page.on('console', (message) => message.type() === 'error' && trouble.push(message.text()));
  }, 300_000);

  afterAll(async () => {
    await browser.close();
    await dispatcher.destroy();
    await worker.close();
    sender.close();
    await shop.close();
    await api.close();
  });

  beforeEach(() => {
    trouble.length = 0;
  });

  // What the API refuses is an error in the browser's console as well.
  afterEach(() => expect(trouble.filter((line) => !line.includes('the server responded'))).toEqual([]));
}

export const hasFocus = (node: Locator) => node.evaluate((one) => one === one.ownerDocument.activeElement);

export async function tabTo(node: Locator): Promise<void> {
  await node.waitFor();
  for (let tabs = 0; !(await hasFocus(node)); tabs += 1) {
    if (tabs > 60) throw new Error(`${String(node)} cannot be reached by Tab`);
    await page.keyboard.press('Tab');
  }
}

export async function press(node: Locator, key = 'Enter'): Promise<void> {
  await tabTo(node);
  await page.keyboard.press(key);
}
