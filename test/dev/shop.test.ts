import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { Agent, request } from 'undici';
import { createResolver } from '../../outbound/connect';
import { createSender, type Sender } from '../../outbound/sender';
import { createAuthority, issueCertificate } from '../../runtime/certificates/issue';
import { startReceiver, type RunningReceiver } from '../../dev/receiver';
import type { PageServer } from '../../dev/pages';
import { startShop } from '../../dev/shop';
import { startTestApi, type TestApi } from '../support/api';
import { startTestWorker, until, type TestWorker } from '../support/delivery';
import { newReference } from '../support/applications';
import { launchBrowser } from '../support/browser';
import { freePort } from '../../dev/ports';
import { internalClient, type InternalClient } from '../support/internal-api';
import { SHOP } from '../support/merchants';
import { addEndpoint, newKeyRingText, storeStatus } from '../support/notifications';
import { randomTaskQueue, testTemporal } from '../support/temporal';
import { fileNeeds } from '../support/needs';

fileNeeds('Chromium');

// The demo shop in a real browser, in front of the real service.
jest.setTimeout(60_000);

const temporal = testTemporal();
const keys = newKeyRingText();
let api: TestApi;
let receiver: RunningReceiver;
let sender: Sender;
let worker: TestWorker;
let shop: PageServer;
let lender: InternalClient;
let browser: Browser;
let page: Page;
let dispatcher: Agent;
let demoRuns = 0;
const trouble: string[] = [];

beforeAll(async () => {
  const day = 86_400_000;
  const validity = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) };
  const authority = await createAuthority('Shop authority', validity);
  const tls = await issueCertificate(authority, [{ type: 'dns', value: 'localhost' }], validity);
  const port = await freePort();
  dispatcher = new Agent({ connect: { ca: authority.cert } });
  let secret = '';
  api = await startTestApi();
  lender = await internalClient(api);
  const partner = {
    apiUrl: `https://127.0.0.1:${api.port}`,
    ca: api.ca,
    partnerId: api.partnerId,
    apiKey: api.keys.test,
  };
  receiver = await startReceiver({
    port,
    tls,
    secrets: () => [secret],
    now: () => new Date(),
    partner,
    moveApplication: async () => {
      const quote = await api.quote({ merchant_id: SHOP });
      const [product] = quote.body.data.products;
      const opened = await lender.open({
        lender: 'lender_a',
        lender_reference: newReference(),
        finance_link: product.merchant_finance_url,
      });
      const applicationId: string = opened.body.data.credit_application_id;
      const event = { lender_event_id: 'story', status: 'submitted', occurred_at: new Date().toISOString() };
      expect((await lender.tell(applicationId, event)).status).toBeLessThan(300);
      return { applicationId, events: 2 };
    },
  });
  const endpoint = { partnerId: api.partnerId, url: receiver.webhookUrl, keyRing: keys };
  ({ secret } = await addEndpoint(api.database, endpoint));
  sender = createSender({
    allowedCidrs: ['127.0.0.0/8'],
    allowedPorts: [port],
    resolver: createResolver([]),
    hosts: new Map([['localhost', ['127.0.0.1']]]),
    ca: authority.cert,
    timeouts: { headersMs: 1_000 },
    now: Date.now,
  });
  worker = await startTestWorker({
    databaseUrl: api.databaseUrl,
    temporal,
    taskQueue: randomTaskQueue(),
    receiver: {
      ca: authority.cert,
      environment: {
        ENVIRONMENT: 'development',
        WEBHOOK_LOCAL_TARGETS: `localhost:${port}`,
      },
    },
    keys,
    // One attempt, which is given a second: what fails has failed for good, as after three days elsewhere.
    environment: { DELIVERY_LADDER_SECONDS: '0' },
    send: (wanted) => sender.send(wanted),
  });
  shop = await startShop({
    port: 0,
    tls,
    partner,
    partnerPage: receiver.url,
    merchants: [{ id: 'M000001', shows: 'standard: all there is' }],
    deliveries: () => receiver.deliveries(),
    runDemoApplication: async () => `Run ${(demoRuns += 1)} is over.`,
  });
  browser = await launchBrowser();
  page = await browser.newPage({ ignoreHTTPSErrors: true });
  page.on('pageerror', (error) => trouble.push(error.message));
  page.on('console', (message) => message.type() === 'error' && trouble.push(message.text()));
}, 300_000);

afterAll(async () => {
  await browser.close();
  await dispatcher.destroy();
  await shop.close();
  await worker.close();
  sender.close();
  await receiver.close();
  await api.close();
});

beforeEach(async () => {
  trouble.length = 0;
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.goto(shop.url);
  await page.locator('#exchange', { hasText: 'M000001' }).waitFor({ state: 'attached' });
});

afterEach(() => expect(trouble).toEqual([]));

/** Presses a test merchant's button and waits for the answer. */
async function show(situation: RegExp): Promise<void> {
  const answered = page.waitForResponse((response) => response.url().endsWith('/quote'));
  await page.getByRole('button', { name: situation }).click();
  await answered;
  await page.locator('#offer[aria-busy=false]').waitFor({ state: 'attached' });
  await page.locator('#exchange', { hasText: 'M0000' }).waitFor({ state: 'attached' });
}

const sidewaysPixels = async () =>
  page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');

const offerText = async () => page.locator('#offer').innerText();

test('shows an offer for its basket as soon as it is open', async () => {
  expect(await offerText()).toMatch(/^Spread the cost .* Learn more/);
  expect(await page.locator('#offer table').count()).toBe(3);
});

test('shows summary, products and the merchant’s disclosure, every link as it came', async () => {
  await show(/standard/);
  expect(await page.locator('#offer .summary').innerText()).toMatch(/^Spread the cost .* Learn more$/);
  const answer = JSON.parse(
    await page.locator('#exchange').evaluate((node) => node.textContent ?? ''),
  ).answer;
  const products: { credit_product: string; merchant_finance_url: string }[] = answer.data.products;
  expect(products).toHaveLength(3);
  for (const { credit_product: name, merchant_finance_url: url } of products) {
    const link = page.getByRole('link', { name: `Apply for ${name}`, exact: true });
    expect(await link.getAttribute('href')).toBe(url);
  }
  expect(await offerText()).toContain('authorised and regulated by the Financial Conduct Authority');
});

test('labels every field of a product by the display rule: `_` becomes a space, capitalised', async () => {
  await show(/standard/);
  const labels = await page.locator('#offer table').first().locator('th').allInnerTexts();
  expect(labels).toEqual([
    'Lender',
    'Credit product',
    'Purchase price',
    'Customer deposit',
    'Loan amount',
    'First payment type',
    'First payment amount',
    'Initial payment due value',
    'Initial payment due unit',
    'APR',
    'Annual interest rate',
    'Number of repayments',
    'Monthly repayment',
    'Cost of credit',
    'Total amount payable excluding deposit',
    'Merchant finance URL',
  ]);
  const row = page.locator('#offer table').first().locator('tr', { hasText: 'Initial payment due' });
  expect(await row.locator('td').allInnerTexts()).toEqual(['1', 'months']);
});

test('gives every figure of every product the same prominence', async () => {
  await show(/standard/);
  const looks = await page.evaluate<string[]>(`
    [...document.querySelectorAll('#offer th, #offer td')].map((cell) => {
      const { fontSize, fontWeight, color, backgroundColor } = getComputedStyle(cell);
      return [fontSize, fontWeight, color, backgroundColor].join(' ');
    })`);
  expect(looks.length).toBeGreaterThan(40);
  expect(new Set(looks).size).toBe(1);
});

test('shows nothing of finance when display is false, and after an error', async () => {
  await show(/standard/);
  await show(/nothing fits/);
  expect(await offerText()).toBe('');
  await show(/standard/);
  await show(/set-up incomplete/);
  expect(await offerText()).toBe('');
  expect(await page.locator('#exchange').textContent()).toContain('MERCHANT_CONFIGURATION_INCOMPLETE');
});

test('shows the plain headline alone for a merchant that is not authorised', async () => {
  await show(/not authorised/);
  expect(await offerText()).toBe('Spread the cost with finance. Learn more');
});

test('says that the deposit was raised, and takes what is no amount to the API', async () => {
  await show(/deposit raised/);
  expect(await offerText()).toContain(
    'Deposit: £550.00. A minimum deposit of 50% of the purchase price is required.',
  );
  await page.getByLabel('Price in pounds').fill('1,100');
  await page.getByRole('button', { name: 'Show finance' }).click();
  await page.locator('#exchange', { hasText: 'INVALID_REQUEST' }).waitFor({ state: 'attached' });
  expect(await offerText()).toBe('');
});

test.each(['2000', '1100', '1100.00'])(
  'a deposit of %s leaves nothing of 1100.00 to finance, so nothing is asked or shown',
  async (deposit) => {
    await show(/standard/);
    await page.getByLabel('Deposit in pounds').fill(deposit);
    await page.getByRole('button', { name: 'Show finance' }).click();
    await page.getByRole('alert').filter({ hasText: 'The deposit must be less than the price.' }).waitFor();
    expect(await offerText()).toBe('');
    const exchange = await page.locator('#exchange').evaluate((node) => node.textContent ?? '');
    expect(JSON.parse(exchange)).toMatchObject({ request: null, answer: null });
    await page.getByLabel('Deposit in pounds').fill('100.00');
    await page.getByRole('button', { name: 'Show finance' }).click();
    await page.locator('#offer table').first().waitFor();
    expect(await page.getByRole('alert').innerText()).toBe('');
    const row = page.locator('#offer table').first().locator('tr', { hasText: 'Purchase price' });
    expect(await row.locator('td').innerText()).toBe('£1,100.00');
  },
);

test('a test notification arrives in the inbox, verified', async () => {
  await page.getByRole('button', { name: 'Send a test notification' }).click();
  await page.getByRole('status').filter({ hasText: 'delivered' }).waitFor();
  const entry = page.locator('#inbox li').first();
  await entry.filter({ hasText: 'signature verified' }).waitFor();
  expect(await entry.innerText()).toContain('credit_application.test');
});

test('lists what strangers post, which may be anything, as not verified', async () => {
  for (const body of ['null', '{"data":null}', '<b>', '{"event_type":"credit_application.test","data":7}'])
    await request(receiver.webhookUrl, { method: 'POST', dispatcher, body });
  await page.locator('#inbox li').filter({ hasText: 'not verified' }).nth(3).waitFor();
});

test('fits a phone: an offer and the longest event take no sideways scrolling', async () => {
  await page.setViewportSize({ width: 375, height: 800 });
  await storeStatus(api.database, { partnerId: api.partnerId, status: 'partially_refunded' });
  await page.locator('#inbox li').filter({ hasText: 'partially_refunded' }).waitFor();
  await show(/standard/);
  expect(await sidewaysPixels()).toBe(0);
});

test('the page of the receiver fits a phone, too, with all its deliveries open', async () => {
  await page.setViewportSize({ width: 375, height: 800 });
  await storeStatus(api.database, { partnerId: api.partnerId, status: 'partially_refunded' });
  await page.locator('#inbox li').filter({ hasText: 'partially_refunded' }).first().waitFor();
  await page.goto(receiver.url);
  await page.getByText('credit_application.partially_refunded').first().waitFor();
  for (const details of await page.locator('summary').all()) await details.click();
  expect(await sidewaysPixels()).toBe(0);
});

test('the demo application is started once per press', async () => {
  await page.getByRole('button', { name: 'Run a demo application' }).click();
  await page.getByRole('status').filter({ hasText: 'Run 1 is over.' }).waitFor();
});

test('"my receiver was down": the partner misses events, asks for them, and has them all, told with the keyboard alone', async () => {
  await page.goto(receiver.url);
  const button = page.getByRole('button', { name: 'My receiver was down' });
  for (
    let tabs = 0;
    !(await button.evaluate((node) => node === node.ownerDocument.activeElement));
    tabs += 1
  ) {
    if (tabs > 40) throw new Error('the button cannot be reached by Tab');
    await page.keyboard.press('Tab');
  }
  await page.keyboard.press('Enter');
  const story = page.locator('#story');
  await story.filter({ hasText: 'nothing is missing' }).waitFor({ timeout: 150_000 });
  const lines = await story.locator('li').allInnerTexts();
  expect(lines[0]).toContain('never answers');
  expect(lines.join('\n')).toMatch(
    /with dry_run counts [12]\.\n.*has begun rcv_.*\nIt has ended: [12] sent again, [12] delivered\./,
  );
  expect(lines.at(-1)).toMatch(/lists 2 events, and the receiver has accepted each: nothing is missing\./);
  await page.getByText('answers 200 to what it can verify').waitFor();
}, 200_000);

test('the partner’s page has its log from the API, and sends one again', async () => {
  const { eventId } = await storeStatus(api.database, { partnerId: api.partnerId, status: 'referred' });
  await page.goto(receiver.url);
  await page.locator('#log tr', { hasText: eventId }).filter({ hasText: 'delivered' }).waitFor();
  const came = async () =>
    receiver.deliveries().filter((one) => one.eventId === eventId && one.verified).length;
  expect(await came()).toBe(1);
  await page.getByRole('button', { name: `Send again: ${eventId}` }).click();
  await page.getByRole('status').filter({ hasText: 'is sent again, with the same event id.' }).waitFor();
  await until(async () => (await came()) === 2, 'it has come again');
});

test.each(['shop', 'partner'])(
  'the page of the %s has no fault that axe finds, and keeps the key on the server',
  async (whose) => {
    if (whose === 'shop') await show(/standard/);
    else {
      await page.goto(receiver.url);
      await page.getByRole('heading', { name: 'What was sent' }).waitFor();
    }
    const content = await page.content();
    expect(content).not.toContain(api.keys.test);
    await page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
    const faults = await page.evaluate(
      "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html)))",
    );
    expect(faults).toEqual([]);
  },
);
