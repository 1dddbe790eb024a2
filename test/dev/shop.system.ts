import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import { request } from 'undici';
import type { Delivery } from '../../dev/shop/webhooks';
import { STORIES } from '../../domain/application-states';
import { storeStatus } from '../../testbed/notifications';
import { api, dispatcher, hasFocus, page, press, shop, tabTo, trusted, useShop } from './shop-scene';

useShop();

describe('its pages', () => {
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

    test('every event arrives live, verified and in order', async () => {
      await press(page.getByRole('link', { name: 'Learn more' }));
      await page.waitForURL(/\/finance\?/);
      await tabTo(page.locator('input[type=radio]:checked'));
      while (!(await page.getByLabel('10 months interest-free').isChecked()))
        await page.keyboard.press('ArrowDown');
      await press(page.getByRole('button', { name: 'Apply for 10 months interest-free' }));
      await page.waitForURL(/\/order\?/);
      await press(page.getByRole('button', { name: 'Approve, and complete' }), 'Space');
      await page.getByRole('status').filter({ hasText: 'Completed. Enjoy your sofa.' }).waitFor();
      const verified = { hasText: 'Signature verified, answered 200' };
      await page.locator('#events li').filter(verified).nth(STORIES.completed.length).waitFor();
      const told = await page.locator('#events li strong').allInnerTexts();
      expect(told.toReversed().map((one) => one.toLowerCase().replace(' ', '_'))).toEqual([
        'created',
        ...STORIES.completed,
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
});

describe('its receiver', () => {
  const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const sent = typeof body === 'string' ? body : JSON.stringify(body);
    // Each on a connection of its own: some receivers answer the first request of one otherwise.
    const wanted = { method: 'POST', dispatcher, body: sent, headers, reset: true } as const;
    const { statusCode, body: answer } = await request(`${shop.url}${path}`, wanted);
    await answer.dump();
    return statusCode;
  };
  const behave = (behaviour: object) => post('/behaviour', behaviour);
  const listed = async () => {
    const answer = await request(`${shop.url}/deliveries`, { dispatcher });
    return ((await answer.body.json()) as { deliveries: Delivery[] }).deliveries;
  };
  beforeEach(() => behave({ mode: 'ok' }));

  test('a test notification arrives, verified, and lists no signature in full', async () => {
    await page.goto(`${shop.url}/developer`);
    await page.getByRole('button', { name: 'Send a test notification' }).click();
    await page.getByRole('status').filter({ hasText: 'delivered' }).waitFor();
    const entry = page.locator('#deliveries li').first();
    await entry
      .filter({ hasText: 'credit_application.test' })
      .filter({ hasText: 'Signature verified' })
      .waitFor();
    const [newest] = await listed();
    expect(newest).toMatchObject({ verified: true, answered: 200, headers: { 'service-test': 'true' } });
    expect(newest?.headers['webhook-signature']).toMatch(/^.{16}…$/);
  });

  test('lists what strangers post, which may be anything, as not verified, and shows it as text', async () => {
    const bodies = ['null', '{"data":null}', '<b>', '{"event_type":"<img src=x onerror=alert(1)>","data":7}'];
    for (const body of bodies)
      expect(await post('/webhooks', body, { authorization: 'Bearer hidden-token' })).toBe(401);
    expect((await listed())[0]).toMatchObject({ verified: false, why: expect.stringContaining('webhook-*') });
    expect(JSON.stringify(await listed())).not.toContain('hidden-token');
    await page.goto(`${shop.url}/developer`);
    await page.locator('#deliveries li').filter({ hasText: 'Not verified' }).nth(3).waitFor();
    expect(await page.locator('#deliveries img').count()).toBe(0);
  });

  test('answers a chosen status, fails some times, and hangs', async () => {
    await behave({ mode: 'status', status: 410 });
    expect([await post('/webhooks', '1'), await post('/webhooks', '1')]).toEqual([410, 410]);
    await behave({ mode: 'fail-times', times: 2 });
    for (const status of [503, 503, 401]) expect(await post('/webhooks', '1')).toBe(status);
    await page.goto(`${shop.url}/developer`);
    await page.getByRole('button', { name: 'Hang' }).click();
    await page.getByText('takes everything and never answers').waitFor();
    const signal = AbortSignal.timeout(300);
    const hanging = request(`${shop.url}/webhooks`, { method: 'POST', dispatcher, body: 'hanging', signal });
    await expect(hanging).rejects.toThrow(/timeout/);
    expect((await listed())[0]).toMatchObject({ body: 'hanging', answered: null });
  });

  test('behaves as a receiver outside', async () => {
    await page.goto(`${shop.url}/developer`);
    await page.getByLabel('Or as receivers').selectOption({ label: 'a second answer 20 ms after the first' });
    await page.getByText('is one of those outside (twice 20 ms)').waitFor();
    expect(await post('/webhooks', 'twice')).toBe(200);
    expect((await listed())[0]).toMatchObject({ body: 'twice', answered: 200 });
    await behave({ mode: 'receiver', receiver: 'long_status' });
    await expect(post('/webhooks', 'unreadable')).rejects.toThrow();
    expect(await behave({ mode: 'receiver', receiver: 'unknown' })).toBe(400);
  });

  test('refuses a behaviour it does not know, and an order from another site', async () => {
    expect([await behave({ mode: 'explode' }), await behave({ mode: 'status', status: 42 })]).toEqual([
      400, 400,
    ]);
    expect(await post('/behaviour', { mode: 'hang' }, { origin: 'https://evil.example' })).toBe(403);
    expect(await post('/elsewhere', '')).toBe(404);
  });

  test.each(['attacker.example', 'localhost.attacker.example:443', '127.0.0.1.nip.io', '[::1]'])(
    'a request for another host, %s, is not answered: its name may lead here',
    async (host) => {
      for (const method of ['GET', 'POST']) {
        // The certificate is taken as that of localhost, whatever host is named.
        const options = { method, ca: trusted, servername: 'localhost', headers: { host } };
        const [answer] = (await once(https.request(shop.url, options).end(), 'response')) as [
          IncomingMessage,
        ];
        expect(answer.statusCode).toBe(421);
        expect(await text(answer)).not.toContain('<html');
      }
    },
  );

  test('"my receiver was down": the partner misses events, asks for them, and has them all, told with the keyboard alone', async () => {
    await page.goto(`${shop.url}/developer`);
    await press(page.getByRole('button', { name: 'My receiver was down' }));
    const story = page.locator('#story');
    await story.filter({ hasText: 'nothing is missing' }).waitFor({ timeout: 150_000 });
    const lines = await story.locator('li').allInnerTexts();
    expect(lines[0]).toContain('never answers');
    expect(lines.join('\n')).toMatch(
      /with dry_run counts \d\.\n.*has begun rcv_.*\nIt has ended: (\d) sent again, \1 delivered\./,
    );
    expect(lines.at(-1)).toMatch(/lists 4 events, and the receiver has accepted each: nothing is missing\./);
    await page.getByText('answers 200 to what it can verify').waitFor();
    // "Send again" stands below what it sends on a phone, else beside it.
    await page.getByRole('button', { name: 'Read again' }).click();
    /** Where the name of an entry ends and its button begins, in one look: the list is read again when something arrives. */
    const entryAt = async (width: number) => {
      await page.setViewportSize({ width, height: 800 });
      const found = await page.waitForFunction(`(() => {
        const button = document.querySelector('#log li button')?.getBoundingClientRect();
        const name = document.querySelector('#log li:has(button) strong')?.getBoundingClientRect();
        return button && name && { below: button.top - name.bottom, beside: button.left - name.right };
      })()`);
      return (await found.jsonValue()) as { readonly below: number; readonly beside: number };
    };
    expect((await entryAt(375)).below).toBeGreaterThan(0);
    expect((await entryAt(1_280)).beside).toBeGreaterThan(0);
  }, 200_000);

  test('says why no webhook comes when another receiver is registered, or none', async () => {
    const elsewhere = page.locator('#elsewhere');
    await page.goto(`${shop.url}/developer`);
    await page.locator('#log li').first().waitFor();
    expect(await elsewhere.innerText()).toBe('');
    await api.database.sql`update webhook_endpoints set url = 'https://elsewhere.example/hooks'`;
    await page.reload();
    await elsewhere.filter({ hasText: 'Webhooks go to https://elsewhere.example/hooks' }).waitFor();
    await api.database.sql`update webhook_endpoints set state = 'removed'`;
    await page.reload();
    await elsewhere.filter({ hasText: 'No receiver is registered' }).waitFor();
  });
});
