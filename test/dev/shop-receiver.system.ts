import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import { request } from 'undici';
import type { Delivery } from '../../dev/shop/webhooks';
import { api, dispatcher, page, press, shop, trusted, useShop } from './shop-scene';

useShop();

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
      const [answer] = (await once(https.request(shop.url, options).end(), 'response')) as [IncomingMessage];
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
