import { readFileSync } from 'node:fs';
import { request } from 'undici';
import { STORIES } from '../../domain/application-states';
import { storeStatus } from '../../testbed/notifications';
import { api, dispatcher, hasFocus, page, press, shop, tabTo, useShop } from './shop-scene';

useShop();

/** Opens the product page for a merchant and waits for the answer to its quote. */
async function show(merchant = 'M000001'): Promise<void> {
  await page.goto(`${shop.url}/?merchant=${merchant}`);
  await page.locator('#example[aria-busy=false]').waitFor({ state: 'attached' });
}

const offer = () => page.locator('#offer').innerText();
const fault = () => page.locator('#fault').innerText();
beforeEach(async () => {
  await page.setViewportSize({ width: 1280, height: 720 });
  await show();
});

test('no page has a fault that axe finds, light or dark, takes sideways scrolling on a phone, or has the key', async () => {
  await storeStatus(api.database, { partnerId: api.partnerId, status: 'partially_refunded' });
  await page.getByRole('link', { name: 'Learn more' }).click();
  const finance = page.url();
  await page.getByRole('button', { name: /^Apply/ }).click();
  await page.waitForURL(/\/order\?/);
  const order = page.url();
  await page.getByRole('button', { name: 'Approve, and complete' }).click();
  await page.getByRole('status').filter({ hasText: 'Completed.' }).waitFor();
  const faults: unknown[] = [];
  for (const [url, ready] of [
    [`${shop.url}/`, '.figures'],
    [finance, '.figures'],
    [order, '.verified'],
    [`${shop.url}/developer`, '#log li'],
  ] as const) {
    await page.setViewportSize({ width: 375, height: 800 });
    await page.goto(url);
    await page.locator(ready).first().waitFor();
    await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    expect(await page.content()).not.toContain(api.keys.test);
    const sideways = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
    expect([url, await page.evaluate(sideways)]).toEqual([url, 0]);
    await page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
    // Dark is another set of colours on the same page.
    for (const [colorScheme, rules] of [
      ['light', '{}'],
      ['dark', "{ runOnly: ['color-contrast'] }"],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      const found = await page.evaluate<string[]>(
        `axe.run(${rules}).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html)))`,
      );
      if (found.length > 0) faults.push([url, colorScheme, found]);
    }
  }
  await page.emulateMedia({ colorScheme: null });
  expect(faults).toEqual([]);
});

describe('by keyboard alone, from the product to the end of the application', () => {
  test('the finance line follows price and deposit', async () => {
    await tabTo(page.getByLabel('Price', { exact: true }));
    await page.keyboard.press('Control+A');
    await page.keyboard.type('1500.00');
    await tabTo(page.getByLabel('Deposit in pounds'));
    for (let steps = 0; steps < 3; steps += 1) await page.keyboard.press('ArrowRight');
    const offered = (hasText: string) => page.locator('#offer').filter({ hasText }).waitFor();
    await offered('deposit £132.00; total amount of credit £1,368.00');
    expect(await page.locator('#price-shown').innerText()).toBe('£1,500.00');
    await page.keyboard.press('Home');
    await offered('deposit £0.00; total amount of credit £1,500.00');
  });

  test.each([
    ['Approve, and complete', 'Completed. Enjoy your sofa.', STORIES.completed],
    ['Decline', 'Declined.', STORIES.declined],
  ])('%s: every event arrives live, verified and in order', async (decision, words, events) => {
    await press(page.getByRole('link', { name: 'Learn more' }));
    await page.waitForURL(/\/finance\?/);
    await tabTo(page.locator('input[type=radio]:checked'));
    while (!(await page.getByLabel('10 months interest-free').isChecked()))
      await page.keyboard.press('ArrowDown');
    await press(page.getByRole('button', { name: 'Apply for 10 months interest-free' }));
    await page.waitForURL(/\/order\?/);
    await press(page.getByRole('button', { name: decision }), 'Space');
    await page.getByRole('status').filter({ hasText: words }).waitFor();
    const verified = { hasText: 'Signature verified, answered 200' };
    await page.locator('#events li').filter(verified).nth(events.length).waitFor();
    const told = await page.locator('#events li strong').allInnerTexts();
    expect(told.toReversed().map((one) => one.toLowerCase().replace(' ', '_'))).toEqual([
      'created',
      ...events,
    ]);
    // What follows is offered where the focus is.
    expect(await hasFocus(page.getByRole('heading', { name: 'Play the lender' }))).toBe(true);
    await press(page.getByRole('link', { name: 'For developers' }));
    await page.getByText('POST /v1/sandbox/credit-applications', { exact: true }).first().waitFor();
  });
});

test('the price has its representative example beside it, in the form of UK rules, and the disclosure', async () => {
  expect(await offer()).toMatch(
    /^Spread the cost from £(\S+) a month at 19\.9% APR representative\. Learn more\n/,
  );
  const answer = await lastAnswer();
  const product = answer.products.at(-1);
  expect(await offer()).toContain(
    `Representative example: cash price £1,299.00; deposit £129.00; total amount of credit £1,170.00; ` +
      `duration 36 monthly repayments of £${product.monthly_repayment}, the first due after 12 months; ` +
      `total amount payable £${product.total_amount_payable_excluding_deposit.replace(/^(\d)(\d{3})/, '$1,$2')}, excluding the deposit; ` +
      `interest rate ${product.annual_interest_rate} a year (fixed); 19.9% APR representative (fixed).`,
  );
  expect(await page.locator('#disclosure').innerText()).toContain('a credit broker, not a lender');
  const sizes = await page.evaluate<string[]>(`
  [...document.querySelectorAll('#offer p, #offer a, #disclosure')].map((one) => {
    const { fontSize, fontWeight, color } = getComputedStyle(one);
    return [fontSize, fontWeight, one.tagName === 'A' || color].join(' ');
  })`);
  expect(new Set(sizes.map((size) => size.split(' ')[0])).size).toBe(1);
});

/** The newest answer to a quote, as the API gave it. */
// oxlint-disable-next-line typescript/no-explicit-any -- as the developer's view shows it
async function lastAnswer(): Promise<any> {
  const link = await page.locator('#offer a').getAttribute('href');
  const id = new URL(link ?? '').searchParams.get('service_quote_id') ?? '';
  const found = await request(`${shop.url}/quote?id=${id}`, { dispatcher });
  return found.body.json();
}

test('labels every field of a product by the display rule, all in the same type, and its link as it came', async () => {
  await page.getByLabel('Way to pay').selectOption('12 months at 9.9% APR');
  const labels = await page.locator('.figures dt').allInnerTexts();
  expect(labels.join(', ')).toBe(
    'Lender, Credit product, Purchase price, Customer deposit, Loan amount, First payment type, First payment amount, ' +
      'Initial payment due value, Initial payment due unit, APR, Annual interest rate, Number of repayments, ' +
      'Monthly repayment, Cost of credit, Total amount payable excluding deposit, Merchant finance URL',
  );
  const looks = await page.evaluate<string[]>(`
  [...document.querySelectorAll('#example p, .figures dt, .figures dd')].map((cell) => {
    const { fontSize, fontWeight, color, backgroundColor } = getComputedStyle(cell);
    return [fontSize, fontWeight, color, backgroundColor].join(' ');
  })`);
  expect(looks).toHaveLength(33);
  expect(new Set(looks).size).toBe(1);
  const [product] = (await lastAnswer()).products;
  const link = page.getByRole('link', { name: 'Apply' });
  expect(await link.getAttribute('href')).toBe(product.merchant_finance_url);
  await link.click();
  await page.getByRole('button', { name: 'Apply for 12 months at 9.9% APR' }).waitFor();
});

test('shows nothing of finance when display is false, and after an error, which has the words of the API', async () => {
  await show('M000003');
  expect([await offer(), await page.locator('#example').innerText(), await fault()]).toEqual(['', '', '']);
  expect(await page.locator('#note').innerText()).toBe(
    'Finance is not available for this price and deposit.',
  );
  await show('M000005');
  expect([await offer(), await page.locator('#note').innerText()]).toEqual(['', '']);
  expect(await fault()).toMatch(/\(MERCHANT_CONFIGURATION_INCOMPLETE\)$/);
});

test('shows the plain headline alone for a merchant that is not authorised', async () => {
  await show('M000002');
  expect((await offer()).trim()).toBe('Spread the cost with finance. Learn more');
  expect(await page.locator('#disclosure').innerText()).toBe('');
});
