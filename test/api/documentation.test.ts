import { signEd25519, hmacSha256 } from '../../outbound/sender';
import { ERROR_STATUSES } from '../../contracts/errors';
import { openApiDocument, SCHEMAS } from '../../scripts/openapi/document';
import { EVENT_SCHEMAS } from '../../scripts/openapi/webhooks';
import { EXAMPLES } from '../../scripts/openapi/partner-examples';
import { generateWebhookSecret } from '../../db/endpoints/secrets';
import { signatureHeaders } from '../../domain/webhook';
import { generateKeyPair } from '../../db/endpoints/key-pairs';
import { quoteResponseSchema } from '../../contracts/quote-response';
import committed from '../../contracts/openapi.json';
import { goodQuote, useApi } from '../support/api';
import type { CallOptions } from '../support/http-call';

const api = useApi({ environment: { PUBLIC_URL: 'https://partners.example/finance/' } });

test('the document is served without a key and is the committed one', async () => {
  const { status, text } = await api.get('/openapi.json', null);
  expect(status).toBe(200);
  expect(text).not.toContain('quotes.example');
  expect(JSON.parse(text.replaceAll('https://partners.example/finance', 'https://quotes.example'))).toEqual(
    committed,
  );
  expect(openApiDocument()).toEqual(committed);
});

/** A request for each operation that the contract refuses, or two: it is answered as its example says. */
const REFUSED: Readonly<Record<string, readonly CallOptions[]>> = {
  getFinanceQuote: [
    { body: { ...goodQuote, merchant_finance_url: 'http://shop.example/' } },
    { body: { ...goodQuote, merchant_id: null, loan_amount: null } },
  ],
  sendTestNotification: [{ path: '/v1/notifications/test?lender=lender_c' }],
  listNotifications: [{ path: '/v1/notifications?limit=101' }],
  resendNotification: [{ body: {} }],
  recoverNotifications: [
    { body: { created_from: 'yesterday', created_to: '2026-11-21T06:00:00Z' } },
    { body: { created_from: '2026-11-21T00:00:00Z' } },
  ],
  simulateCreditApplication: [{ body: { service_quote_id: 'qte_1', story: 'lost' } }, { body: {} }],
  simulateEvent: [{ body: { status: 'lost' } }, { body: {} }],
};

interface Operation {
  readonly operationId: string;
  readonly responses: {
    readonly 400: {
      readonly content: {
        readonly 'application/json': {
          readonly examples: Record<string, { readonly value: { readonly error: object } }>;
        };
      };
    };
  };
}
const PREFIXES: Readonly<Record<string, string>> = {
  notification: 'ntf',
  recovery: 'rcv',
  credit_application: 'app',
};
const everyCall = Object.entries(committed.paths).flatMap(([path, methods]) =>
  Object.entries(methods as Record<string, Operation>).map(
    ([method, operation]) => [operation.operationId, method.toUpperCase(), path, operation] as const,
  ),
);

test.each(everyCall)(
  '%s is refused with 400 as its own examples show',
  async (id, method, pattern, operation) => {
    const path = pattern.replace(
      /\{(\w+)_id\}/,
      (_, noun: string) => `${PREFIXES[noun]}_01KAF1Z4Q0T6M5S7Y2W3X4V5B9`,
    );
    const { examples } = operation.responses[400].content['application/json'];
    const calls = REFUSED[id] ?? [{ path: `${path}?verbose=1` }];
    const answers = await Promise.all(
      calls.map((wanted) => api.call({ method, path, body: undefined, ...wanted })),
    );
    const shown = Object.entries(examples).filter(([code]) => code !== 'INVALID_AMOUNT_FORMAT');
    expect(answers.map(({ body }) => [body.error.code, body])).toEqual(
      shown.map(([code, { value }]) => [code, value]),
    );
  },
);

test('every error code has an example under its own status', () => {
  type Responses = Record<string, { content: { 'application/json': { examples: object } } }>;
  const operations = Object.values(committed.paths).flatMap(
    (path) => Object.values(path) as { responses: Responses }[],
  );
  const documented = operations.flatMap(({ responses }) =>
    Object.entries(responses).flatMap(([status, response]) =>
      Object.keys(response.content['application/json'].examples).map((code) => `${status} ${code}`),
    ),
  );
  for (const [code, status] of Object.entries(ERROR_STATUSES))
    expect(documented).toContain(`${status} ${code}`);
});

test('the examples of requests, answers and events fit the contract', () => {
  const shown = new Map<string, Record<string, { readonly value: unknown }>>(Object.entries(EXAMPLES));
  for (const [schema, io] of [...SCHEMAS, ...EVENT_SCHEMAS]) {
    for (const { value } of Object.values(shown.get(schema.meta()?.id ?? '') ?? {})) {
      const parsed: unknown = schema.strict().parse(value);
      if (io === 'output') expect(parsed).toEqual(value);
    }
    shown.delete(schema.meta()?.id ?? '');
  }
  expect(shown.size).toBe(0);
});

test('the headers of an event are as documented', () => {
  const secrets = [1, 2].map(() => generateWebhookSecret());
  const keyPairs = [1, 2, 3].map(generateKeyPair);
  const input = { body: '{}', eventId: 'evt_1', timestamp: 1_795_262_400, secrets, keyPairs };
  const signed = signatureHeaders({ ...input, hmac: hmacSha256, sign: signEd25519 });
  const headers: Record<string, string> = { ...signed, 'Service-Test': 'true' };
  for (const { name, schema } of committed.webhooks.testEvent.post.parameters) {
    const { pattern = '.' } = schema as { pattern?: string };
    expect(headers[name]).toMatch(new RegExp(pattern));
  }
});

test('the example request is answered like the example response', async () => {
  const { value: sent } = EXAMPLES.QuoteRequest.basket;
  const { value: expected } = EXAMPLES.QuoteResponse.offers;
  const answer = await api.call({ body: sent });
  const text = answer.text.replaceAll(answer.body.data.service_quote_id, expected.data.service_quote_id);
  const received = JSON.parse(text);
  expect(quoteResponseSchema.parse(expected)).toEqual(expected);
  expect(received.data.summary).toEqual(expected.data.summary);
  expect(received.data.products[0]).toEqual(expected.data.products[0]);
});
