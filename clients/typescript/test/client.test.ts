import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startTestService, type TestService } from '../../../test/support/service';
import { startTestApi, type TestApi } from '../../../test/support/api';
import { addEndpoint } from '../../../test/support/notifications';
import { testTemporal } from '../../../test/support/temporal';
import { removeDirectory, temporaryDirectory } from '../../../test/support/temporary-directory';
import type { WebhookReceiver } from '../../../test/support/webhook-receiver';
import { installPackage, runScript, typeCheck } from './package';

// The package as a partner gets it: built, imported by name in a process of its own, against the real service.

const temporal = testTemporal();
let service: TestService;
let folder: string;
let api: TestApi;
let receiver: WebhookReceiver;
let secret: string;

beforeAll(async () => {
  folder = await temporaryDirectory('client');
  installPackage(folder);
  service = await startTestService(temporal);
  ({ api, receiver } = service);
  writeFileSync(join(folder, 'ca.pem'), api.ca);
  const partner = { partnerId: api.partnerId, url: receiver.url, keyRing: service.keys };
  ({ secret } = await addEndpoint(api.database, partner));
}, 300_000);

afterAll(async () => {
  await service.close();
  await removeDirectory(folder);
});

/** Runs statements that leave their result in `said`, with a client at hand. */
const partner = (statements: string, input: Record<string, unknown> = {}) =>
  runScript(
    folder,
    `import { createClient, verifyWebhook, ApiError } from 'partner-finance-client';
    const input = JSON.parse(process.env.INPUT);
    const client = createClient(input);
    let said;
    ${statements}
    console.log(JSON.stringify(said));`,
    {
      baseUrl: `https://127.0.0.1:${api.port}`,
      apiKey: api.keys.test,
      partnerId: api.partnerId,
      ...input,
    },
    join(folder, 'ca.pem'),
  );

const REQUEST = `{ merchant_id: 'M000001', loan_amount: '900.00', customer_deposit: '100.00',
  merchant_finance_url: 'https://shop.example/finance', merchant_reference: 'basket 2041' }`;

test('gets a quote', async () => {
  expect(await partner(`said = await client.quote(${REQUEST});`)).toMatchObject({
    service_quote_id: expect.stringMatching(/^qte_/),
    merchant_reference: 'basket 2041',
    summary: { display: true },
    products: expect.arrayContaining([expect.objectContaining({ loan_amount: '900.00' })]),
  });
});

test('throws what the service refuses, with code, details and request id', async () => {
  const said = await partner(
    `try { await client.quote({ merchant_id: 'M000001' }, { requestId: 'basket-7' }); } catch (error) {
      said = { ours: error instanceof ApiError, ...error, message: error.message };
    }`,
  );
  expect(said).toMatchObject({
    ours: true,
    status: 400,
    code: 'MISSING_FIELD',
    details: { fields: ['loan_amount', 'merchant_finance_url'] },
    requestId: 'basket-7',
    retryAfterSeconds: null,
  });
});

test('says how long to wait at the limit', async () => {
  const limited = await startTestApi({ environment: { RATE_LIMIT_PER_MINUTE: '1' } });
  try {
    writeFileSync(join(folder, 'ca.pem'), limited.ca);
    const said = await partner(
      `await client.quote(${REQUEST});
      said = await client.quote(${REQUEST}).catch((error) => [error.code, error.retryAfterSeconds]);`,
      { baseUrl: `https://127.0.0.1:${limited.port}`, apiKey: limited.keys.test },
    );
    expect(said).toEqual(['RATE_LIMIT_EXCEEDED', expect.any(Number)]);
  } finally {
    writeFileSync(join(folder, 'ca.pem'), api.ca);
    await limited.close();
  }
});

test('gives up in time, and takes no plain address', async () => {
  expect(
    await partner(`said = await client.quote(${REQUEST}).catch((error) => error.name);`, { timeoutMs: 1 }),
  ).toBe('TimeoutError');
  expect(
    await partner(
      `try { createClient({ ...input, baseUrl: 'http://quotes.example' }); } catch (error) { said = error.name; }`,
    ),
  ).toBe('TypeError');
});

test('sends a test notification, and verifies what arrives', async () => {
  const sent = await partner(`said = await client.sendTestNotification({ lender: 'lender_b' });`);
  expect(sent).toMatchObject({ status: 'delivered', event_type: 'credit_application.test' });
  const [received] = receiver.received;
  const verify = `try { said = verifyWebhook(input.body, input.headers, input.secrets); }
    catch (error) { said = error.name; }`;
  const { body = '', headers } = received ?? {};
  expect(await partner(verify, { body, headers, secrets: secret })).toMatchObject({
    event_type: 'credit_application.test',
    data: { lender: 'lender_b' },
  });
  const stranger = `whsec_${Buffer.alloc(32).toString('base64')}`;
  expect(await partner(verify, { body, headers, secrets: [stranger, secret] })).toMatchObject({
    sequence: 1,
  });
  const tampered = body.replace('lender_b', 'lender_a');
  expect(await partner(verify, { body: tampered, headers, secrets: secret })).toBe(
    'WebhookVerificationError',
  );
  expect(await partner(verify, { body, headers, secrets: stranger })).toBe('WebhookVerificationError');
  expect(await partner(verify, { body, headers: {}, secrets: secret })).toBe('WebhookVerificationError');
  const later = `Date.now = () => Number(input.headers['webhook-timestamp']) * 1000 + 301_000; ${verify}`;
  expect(await partner(later, { body, headers, secrets: secret })).toBe('WebhookVerificationError');
});

test('has types that know the contract', () => {
  const code = `
    import { createClient, type WebhookEvent } from 'partner-finance-client';
    const client = createClient({ baseUrl: 'https://x', apiKey: 'k', partnerId: 'P100001' });
    const quote = await client.quote(${REQUEST});
    export const rates: string[] = quote.products.map((product) => product.apr);
    // @ts-expect-error -- no such field
    quote.prodcuts;
    // @ts-expect-error -- a required field is missing
    void client.quote({ merchant_id: 'M000001', loan_amount: '1.00' });
    // @ts-expect-error -- no such lender
    void client.sendTestNotification({ lender: 'lender_c' });
    export const reference = (event: WebhookEvent): string | null => event.data.merchant_reference;`;
  expect(typeCheck(folder, code)).toBe('');
}, 60_000);
