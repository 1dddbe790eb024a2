import { signEd25519, hmacSha256 } from '../../outbound/sender';
import { ERROR_STATUSES } from '../../contracts/errors';
import { openApiDocument, SCHEMAS } from '../../scripts/openapi/document';
import { EXAMPLES } from '../../scripts/openapi/partner-examples';
import { generateWebhookSecret } from '../../db/endpoints/secrets';
import { signatureHeaders } from '../../domain/webhook';
import { generateKeyPair } from '../../db/endpoints/key-pairs';
import { quoteResponseSchema } from '../../contracts/quote-response';
import committed from '../../contracts/openapi.json';
import { useApi } from '../support/api';

const api = useApi();

test('the document is served without a key and is the committed one', async () => {
  const { status, body } = await api.get('/openapi.json', null);
  expect([status, body]).toEqual([200, committed]);
  expect(openApiDocument()).toEqual(committed);
});

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
  for (const [schema, io] of SCHEMAS) {
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
    const { pattern = '.', const: only } = schema as { pattern?: string; const?: string };
    expect(headers[name]).toMatch(new RegExp(pattern));
    if (only !== undefined) expect(headers[name]).toBe(only);
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
