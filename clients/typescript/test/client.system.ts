import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useService } from '../../../test/support/service';
import { runDirectory } from '../../../testbed/temporary-directory';
import openApi from '../../../contracts/openapi.json';
import { generateKeyPair, rotateKeyPair } from '../../../db/endpoints/key-pairs';
import { parseKeyRing } from '../../../db/endpoints/key-ring';
import { storeRow } from '../../../test/support/partner-events';
import {
  BAD_PUBLIC_KEYS,
  BAD_SECRETS,
  forgeries,
  genuine,
  GOOD_PUBLIC_KEYS,
  GOOD_SECRETS,
  keyMaterialOf,
  MESSAGE,
  NOW,
} from '../../../test/examples/forgeries';
import { installPackage, runScript, typeCheck } from './built-package';

// The package as a partner gets it: built, imported by name in a process of its own, against the real service.

const service = useService();
const { api, receiver, register } = service;
const folder = runDirectory('client');
let secret: string;

beforeAll(async () => {
  await installPackage(folder);
  writeFileSync(join(folder, 'ca.pem'), api.ca);
  ({ secret } = await register());
}, 300_000);

/** Runs statements that leave their result in `said`, with a client at hand. */
const partner = (statements: string, input: Record<string, unknown> = {}) =>
  runScript(
    folder,
    `import { createClient, createWebhookVerifier, readWebhookKeys, verifyWebhook, ApiError } from 'partner-finance-client';
    const input = JSON.parse(process.env.INPUT);
    const calls = [];
    // Faults that the service does not have are put in its place; everything else is the real one.
    const faults = [...(input.faults ?? [])];
    const fetch = async (request) => {
      calls.push(\`\${request.method} \${new URL(request.url).pathname}\`);
      const fault = faults.shift();
      if (fault === 'lost') throw new TypeError('fetch failed');
      if (fault === undefined || fault === null) return globalThis.fetch(request);
      const error = { code: fault.code ?? 'INTERNAL_SERVER_ERROR', message: 'injected' };
      return new Response(JSON.stringify({ success: false, error }), fault);
    };
    const client = createClient({ ...input, fetch });
    let said;
    ${statements}
    console.log(JSON.stringify(said));`,
    { baseUrl: `https://127.0.0.1:${api.port}`, apiKey: api.keys.test, partnerId: api.partnerId, ...input },
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

test('gives up in time, takes no plain address, and names an option that is missing', async () => {
  const late = `said = await client.quote(${REQUEST}).catch((error) => error.name);`;
  expect(await partner(late, { timeoutMs: 1 })).toBe('TimeoutError');
  const refused = `said = ['http://quotes.example', undefined].map((baseUrl) => {
    try { createClient({ ...input, baseUrl }); } catch (error) { return String(error); }
  });`;
  expect(await partner(refused)).toEqual([
    'TypeError: baseUrl must begin with https://',
    'TypeError: baseUrl is missing',
  ]);
});

test('every operation of the contract has a method', async () => {
  const [recovery, none] = ['rcv', 'app'].map((prefix) => `${prefix}_01KAF1Z4Q0T6M5S7Y2W3X4V5BA`);
  const span = `{ created_from: new Date(Date.now() - 3_600_000), created_to: new Date() }`;
  const said = await partner(
    `const { service_quote_id: quoteId } = await client.quote(${REQUEST});
    const { notification_id: id } = await client.sendTestNotification();
    for await (const one of client.listNotifications({ status: 'delivered' })) said = one.notification_id === id;
    const whole = await client.getNotification(id);
    const code = (promise) => promise.then(() => 'done', (error) => error.code);
    const answers = [
      await code(client.resendNotification(id)),
      (await client.countMissed(${span})).matched,
      await code(client.recoverNotifications(${span})),
      await code(client.getRecovery('${recovery}')),
      await code(client.getCreditApplication('${none}')),
      (await client.listWebhookKeys()).length,
      (await client.getWebhookEndpoint()).state,
      await code(client.simulateEvent('${none}', 'submitted')),
      (await client.simulateApplication({ service_quote_id: quoteId, story: 'declined' })).status,
    ];
    said = { said, payload: JSON.parse(whole.payload).event_type, answers, calls, id };`,
  );
  const { id, calls, ...rest } = said as { id: string; calls: string[] };
  expect(rest).toEqual({
    said: true,
    payload: 'credit_application.test',
    answers: [
      'NOTIFICATION_NOT_RESENDABLE',
      0,
      'done',
      'RECOVERY_NOT_FOUND',
      'APPLICATION_NOT_FOUND',
      1,
      'active',
      'APPLICATION_NOT_FOUND',
      'declined',
    ],
  });
  const operations = Object.entries<object>(openApi.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) =>
      `${method.toUpperCase()} ${path}`
        .replace('{notification_id}', id)
        .replace('{recovery_id}', recovery ?? '')
        .replace('{credit_application_id}', none ?? ''),
    ),
  );
  expect([...new Set(calls)].toSorted()).toEqual(operations.toSorted());
});

test('pages are read as they are needed', async () => {
  const ids: string[] = [];
  for (let nth = 0; nth < 3; nth += 1)
    ids.unshift(await storeRow(api.database, { partnerId: api.partnerId, merchantReference: 'paged' }));
  const said = await partner(
    `const listed = [];
    for await (const one of client.listNotifications({ merchant_reference: 'paged', limit: 1 })) listed.push(one.notification_id);
    const all = calls.length;
    for await (const one of client.listNotifications({ merchant_reference: 'paged', limit: 1 })) { listed.push(one.notification_id); break; }
    said = { listed, all, more: calls.length - all };`,
  );
  expect(said).toEqual({ listed: [...ids, ids[0]], all: 3, more: 1 });
});

describe('a call that fails', () => {
  const BUSY = { status: 503, headers: { 'retry-after': '0' } };
  const LIMITED = { status: 429, code: 'RATE_LIMIT_EXCEEDED', headers: { 'retry-after': '0' } };
  type Case = [call: string, ...faults: unknown[]];
  /** What calls come to with these faults, and how many requests each made. */
  const outcomes = (...cases: Case[]) => {
    const statements = cases.map(
      ([call], at) => `
      faults.splice(0, faults.length, ...input.cases[${at}]);
      calls.length = 0;
      said.push(await client.${call}.then(() => 'done', (error) => error.code ?? error.name) + ' ' + calls.length);`,
    );
    return partner(`said = []; ${statements.join('')}`, { cases: cases.map(([, ...faults]) => faults) });
  };
  const QUOTE = `quote(${REQUEST})`;
  const SPAN = '{ created_from: new Date(Date.now() - 60_000), created_to: new Date() }';
  const RESEND = `resendNotification('ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5BA')`;

  test('is repeated twice at most when doing it again does no harm', async () => {
    const said = await outcomes(
      ['listWebhookKeys()', BUSY, 'lost'],
      ['listWebhookKeys()', BUSY, BUSY, BUSY],
      [QUOTE, 'lost'],
      [`countMissed(${SPAN})`, BUSY],
    );
    expect(said).toEqual(['done 3', 'INTERNAL_SERVER_ERROR 3', 'done 2', 'done 2']);
  });

  test('is not repeated when it may have been done, and is when it was not', async () => {
    for (const call of ['sendTestNotification()', RESEND, `recoverNotifications(${SPAN})`])
      expect(await outcomes([call, BUSY], [call, 'lost'])).toEqual([
        'INTERNAL_SERVER_ERROR 1',
        'TypeError 1',
      ]);
    expect(await outcomes([RESEND, LIMITED, LIMITED])).toEqual(['NOTIFICATION_NOT_FOUND 3']);
  });

  test('is not repeated when that cannot help, or would take too long', async () => {
    const after = (seconds: number) => ({ headers: { 'retry-after': `${seconds}` } });
    const said = await outcomes(
      [QUOTE.replace('M000001', 'M000005')],
      ['sendTestNotification()', { ...LIMITED, code: 'TEST_NOTIFICATION_LIMIT_REACHED' }],
      [QUOTE, { ...LIMITED, ...after(60) }],
      [QUOTE, { ...BUSY, ...after(3_600) }],
    );
    const refused = ['MERCHANT_CONFIGURATION_INCOMPLETE 1', 'TEST_NOTIFICATION_LIMIT_REACHED 1'];
    expect(said).toEqual([...refused, 'RATE_LIMIT_EXCEEDED 1', 'INTERNAL_SERVER_ERROR 1']);
  });

  test('ends with its signal, in the middle of a wait', async () => {
    const said = await partner(
      `const controller = new AbortController();
      const ended = client.listWebhookKeys({ signal: controller.signal }).catch((error) => error.name);
      setTimeout(() => controller.abort(), 50);
      said = [await ended, calls.length];`,
      { faults: [{ ...BUSY, headers: { 'retry-after': '30' } }] },
    );
    expect(said).toEqual(['AbortError', 1]);
  });

  test('is not retried at all when that is wanted, and says how long to wait', async () => {
    const said = await partner(
      `said = await client.listWebhookKeys().catch((error) => [error.code, error.retryAfterSeconds, calls.length]);`,
      { faults: [{ ...LIMITED, headers: { 'retry-after': '7' } }], retries: 0 },
    );
    expect(said).toEqual(['RATE_LIMIT_EXCEEDED', 7, 1]);
  });
});

test('a clock that is put back makes no call wait longer than the minute of the limit', async () => {
  const said = await partner(
    `await client.listWebhookKeys().catch(() => undefined);
    const waits = [];
    const { now } = Date;
    const { setTimeout } = globalThis;
    globalThis.setTimeout = (...[done, ms, ...rest]) => { waits.push(ms); return setTimeout(done, 0, ...rest); };
    Date.now = () => now() - 3_600_000;
    for await (const one of client.listNotifications()) break;
    const longest = Math.max(...waits);
    said = [longest > 1_000, longest <= 30_000];`,
    {
      faults: [
        {
          status: 404,
          headers: { 'ratelimit-limit': '100', 'ratelimit-remaining': '2', 'ratelimit-reset': '60' },
        },
      ],
    },
  );
  expect(said).toEqual([true, true]);
});

describe('a webhook', () => {
  let request: { body: string; headers: Record<string, unknown> };
  let keys: { own: string[]; live: string[] };
  /** What the verifier says of the request with each of these changes; `later` puts its clock ahead, in seconds. */
  const verdicts = (cases: { keys: unknown; body?: string; headers?: object; later?: number }[]) =>
    partner(
      `said = [];
      const clock = Date.now;
      for (const { body, headers, keys, later } of input.cases) {
        Date.now = later === undefined ? clock : () => (Number(headers['webhook-timestamp']) + later) * 1000;
        const verdict = verifyWebhook(body, headers, keys);
        said.push(await verdict.then((event) => event.data.lender, (error) => error.reason ?? error.name));
      }`,
      { cases: cases.map((one) => ({ ...request, ...one })) },
    );
  const listed = async (apiKey: string) => {
    const said = 'said = (await client.listWebhookKeys()).map((one) => one.public_key);';
    return (await partner(said, { apiKey })) as string[];
  };

  beforeAll(async () => {
    receiver.received.length = 0;
    const sent = await partner(`said = await client.sendTestNotification({ lender: 'lender_b' });`);
    expect(sent).toMatchObject({ status: 'delivered', event_type: 'credit_application.test' });
    const { body = '', headers = {} } = receiver.received[0] ?? {};
    request = { body, headers };
    await register(api.partnerId, 'live');
    keys = { own: await listed(api.keys.test), live: await listed(api.keys.live) };
  });

  test.each(['secret', 'public key'] as const)('is verified with a %s, and nothing else is', async (kind) => {
    const [own, other] =
      kind === 'secret'
        ? [secret, `whsec_${Buffer.alloc(32).toString('base64')}`]
        : [keys.own[0], generateKeyPair().publicKey];
    const forged = { ...request.headers, 'webhook-signature': 'v1,AAAA v1a,AAAA v1a,! v1' };
    const expected: [string, object][] = [
      ['lender_b', {}],
      ['lender_b', { keys: [other, own] }],
      ['lender_b', { later: 299 }],
      ['timestamp', { later: 301 }],
      ['timestamp', { later: -301 }],
      ['signature', { body: request.body.replace('lender_b', 'lender_a') }],
      ['signature', { keys: other }],
      ['TypeError', { keys: [] }],
      ['lender_b', { keys: ` ${other}  ${own}\n` }],
      ['signature', { headers: forged }],
      ['headers', { headers: {} }],
      ['TypeError', { keys: own?.slice(0, -4) }],
      // Of the other environment, and a public key in a secret's place.
      ['signature', { keys: keys.live }],
      ['signature', { keys: keys.own[0]?.replace('whpk_', 'whsec_') }],
    ];
    const said = await verdicts(expected.map(([, changes]) => ({ keys: own, ...changes })));
    expect(said).toEqual(expected.map(([verdict]) => verdict));
  });

  test.each(['secrets', 'public keys'] as const)(
    'is refused when it is forged, and no %s are guessed',
    async (kind) => {
      const form = kind === 'secrets' ? 'Standard Webhooks' : 'public keys';
      const [bad, good] =
        kind === 'secrets' ? [BAD_SECRETS, GOOD_SECRETS] : [BAD_PUBLIC_KEYS, GOOD_PUBLIC_KEYS];
      const said = (await partner(
        `Date.now = () => input.now * 1000;
      said = { threw: [], verified: [], forged: [] };
      for (const [name, keys] of input.bad) {
        const errors = [() => readWebhookKeys(keys), () => verifyWebhook(input.body, input.headers, keys ?? [])];
        for (const call of errors)
          said.threw.push([name, await (async () => call())().then(() => 'passed', (error) => error.message)]);
      }
      for (const keys of input.good)
        said.verified.push(await verifyWebhook(input.body, input.headers, readWebhookKeys(keys)).then(() => 'verified', (error) => error.message));
      for (const { name, headers, body } of input.forgeries)
        said.forged.push([name, await verifyWebhook(body, headers, input.good[3]).then(() => 'verified', (error) => error.name)]);`,
        {
          now: NOW,
          body: MESSAGE.body,
          headers: genuine(form),
          // JSON has no undefined. A key of the other kind is one to this function.
          bad: bad.filter(([name]) => name !== 'another prefix').map(([name, text]) => [name, text ?? null]),
          good,
          forgeries: forgeries(form),
        },
      )) as { threw: [string, string][]; verified: string[]; forged: [string, string][] };
      const texts = new Map(bad);
      for (const [name, message] of said.threw) {
        expect([name, message]).toEqual([
          name,
          expect.stringMatching(/there is no key|begins with neither|must come 32 bytes in base64/),
        ]);
        for (const part of keyMaterialOf(texts.get(name))) expect([name, message]).not.toContain(part);
      }
      expect(said.verified).toEqual(good.map(() => 'verified'));
      expect(said.forged).toEqual(said.forged.map(([name]) => [name, 'WebhookVerificationError']));
    },
  );

  test('is refused while no public key is listed', async () => {
    const said = await partner(
      `const webhooks = createWebhookVerifier({ listWebhookKeys: async () => [] });
      said = await webhooks.verify(input.body, input.headers).catch((error) => [error.name, error.reason]);`,
      request,
    );
    expect(said).toEqual(['WebhookVerificationError', 'signature']);
  });

  test('is verified with the keys that are listed, which are read again when none fits', async () => {
    const owner = { partnerId: api.partnerId, environment: 'sandbox' } as const;
    const rotated = await api.database.db.transaction((tx) =>
      rotateKeyPair(tx, owner, { overlapSeconds: 0, keyRing: parseKeyRing(service.keys) }),
    );
    await partner(`said = await client.sendTestNotification({ lender: 'lender_a' });`);
    const { body, headers } = receiver.received.at(-1) ?? {};
    const said = await partner(
      `const real = client.listWebhookKeys;
      let reads = 0;
      // Read before the rotation.
      client.listWebhookKeys = async (options) => {
        reads += 1;
        return reads === 1 ? input.before.map((public_key) => ({ public_key })) : real(options);
      };
      const webhooks = createWebhookVerifier(client);
      const verdict = (one) => webhooks.verify(one.body, one.headers).then((event) => event.data.lender, (error) => error.reason);
      // The first arrives while this machine's clock is a day ahead: the keys are read, and soon read again all the same.
      const [clock, uptime] = [Date.now, performance.now.bind(performance)];
      Date.now = () => clock() + 86_400_000;
      said = [await verdict(input.old), reads];
      Date.now = clock;
      said.push(await verdict(input.old), reads, await verdict(input.now), reads);
      performance.now = () => uptime() + 61_000;
      said.push(await verdict(input.now), reads, await verdict(input.old), reads, await verdict(input.old), reads);`,
      { before: keys.own, old: request, now: { body, headers } },
    );
    expect(await listed(api.keys.test)).toEqual([rotated.publicKey]);
    // A minute apart at least; then what only the old key signed is refused.
    expect((said as unknown[]).splice(0, 6)).toEqual(['timestamp', 1, 'lender_b', 1, 'signature', 1]);
    expect(said).toEqual(['lender_a', 2, 'signature', 2, 'signature', 2]);
  });

  test('goes on with the keys read last while they cannot be read, and fails openly when they never were', async () => {
    const said = await partner(
      `let broken = true;
      const listWebhookKeys = async () => {
        if (broken) throw new TypeError('fetch failed');
        return input.keys.map((public_key) => ({ public_key }));
      };
      const webhooks = createWebhookVerifier({ listWebhookKeys });
      const verdict = () => webhooks.verify(input.body, input.headers).then((event) => event.data.lender, (error) => error.name);
      said = [await verdict()];
      broken = false;
      said.push(await verdict());
      broken = true;
      const uptime = performance.now.bind(performance);
      performance.now = () => uptime() + 3_700_000;
      said.push(await verdict());`,
      { ...request, keys: keys.own },
    );
    expect(said).toEqual(['TypeError', 'lender_b', 'lender_b']);
  });
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
    // @ts-expect-error -- no such status
    void client.listNotifications({ status: 'lost' });
    for await (const one of client.listNotifications({ status: 'failed', created_from: new Date() }))
      await client.resendNotification(one.notification_id);
    // @ts-expect-error -- no such state
    void client.simulateEvent('app_1', 'funded');
    // @ts-expect-error -- a span has two ends
    void client.recoverNotifications({ created_from: new Date() });
    export const reference = (event: WebhookEvent): string | null => event.data.merchant_reference;`;
  expect(typeCheck(folder, code)).toBe('');
});

test.each([
  ['node16', ['--module', 'node16']],
  ['node10', ['--module', 'commonjs', '--moduleResolution', 'node10']],
])('a CommonJS project that resolves modules as %s has the types', (_form, options) => {
  const code = `import { createClient, type Quote } from 'partner-finance-client';
    const client = createClient({ baseUrl: 'https://quotes.example', apiKey: 'key', partnerId: 'P100001' });
    export const summary = (quote: Quote): boolean => quote.summary.display;
    // @ts-expect-error -- so the types are not any
    void client.simulateEvent('app_1', 'funded');`;
  expect(typeCheck(folder, code, options, 'partner.cts')).toBe('');
});
