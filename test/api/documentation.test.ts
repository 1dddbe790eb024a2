import { stringify } from 'node:querystring';
import { signEd25519, hmacSha256 } from '../../outbound/sender';
import { z } from 'zod';
import { serializer } from '../../api/answers';
import { methodAndPath, type Operation } from '../../api/operation';
import { lenderOperations } from '../../api/routes/credit-applications';
import { partnerOperations } from '../../api/routes/operations';
import { REFUSALS } from '../../contracts/errors';
import { FINANCE_URL_PATTERN, financeUrlFault, quoteRequest } from '../../contracts/quote-request';
import {
  applicationEventExamples,
  applicationEventSchema,
  testEventExamples,
  testEventSchema,
} from '../../contracts/webhook-event';
import { openApiDocument } from '../../scripts/openapi/document';
import { wrongRequests } from '../../scripts/openapi/operations';
import { generateWebhookSecret } from '../../db/endpoints/secrets';
import { signatureHeaders } from '../../domain/webhook';
import { generateKeyPair } from '../../db/endpoints/key-pairs';
import { quoteExamples, quoteResponseSchema } from '../../contracts/quote-response';
import committedInternally from '../../contracts/internal-openapi.json';
import committed from '../../contracts/openapi.json';
import { useApi } from '../support/api';
import { exampleCall } from '../support/contract';

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

type Examples = Record<string, { readonly value: object }>;
interface Documented {
  readonly responses: Record<
    number,
    { readonly content: { readonly 'application/json': { readonly examples: Examples } } }
  >;
}
/** The errors that the document shows for a call. */
function examplesOf(one: Operation<never>, status: number): Examples {
  const [method, path] = methodAndPath(one);
  const documented = (committed.paths as unknown as Record<string, Record<string, Documented>>)[path]?.[
    method.toLowerCase()
  ];
  return documented?.responses[status]?.content['application/json'].examples ?? {};
}

test('an amount of a request is text, which every generator has, and the fields of spec 2.2 are required', () => {
  const { required, properties } = committed.components.schemas.QuoteRequest;
  expect(required).toEqual(['merchant_id', 'partner_id', 'loan_amount', 'merchant_finance_url']);
  expect([properties.loan_amount.type, properties.customer_deposit.type]).toEqual([
    'string',
    ['string', 'null'],
  ]);
});

test('no schema has the name of a class that generated clients bring along', () => {
  // A Ruby client of openapi-generator could not be loaded for an ApiError of ours (its issue 10650).
  const theirs = ['ApiClient', 'ApiError', 'ApiException', 'ApiResponse', 'Configuration', 'Error'];
  for (const { components } of [committed, committedInternally])
    expect(Object.keys(components.schemas).filter((name) => theirs.includes(name))).toEqual([]);
});

test.each(partnerOperations.map((one) => [one.id, one] as const))(
  '%s is refused with 400 as its own examples show',
  async (_id, one) => {
    const [method, path] = exampleCall(one);
    const answers = await Promise.all(
      wrongRequests(one).map(({ query = {}, body }) =>
        api.call({ method, path: `${path}?${stringify(query as Record<string, string>)}`, body }),
      ),
    );
    const shown = Object.values(examplesOf(one, 400));
    expect(answers.map(({ body }) => body)).toEqual(shown.map(({ value }) => value));
  },
);

test('every error code has an example under its own status', () => {
  const documented = partnerOperations.flatMap((one) =>
    [400, 401, 404, 409, 422, 429, 500].flatMap((status) =>
      Object.keys(examplesOf(one, status)).map((code) => `${status} ${code}`),
    ),
  );
  expect(new Set(documented)).toEqual(
    new Set(Object.entries(REFUSALS).map(([code, { status }]) => `${status} ${code}`)),
  );
});

test('the examples of requests, answers and events fit the contract', () => {
  const bodies = [...partnerOperations, ...lenderOperations].flatMap(({ body }) => body ?? []);
  for (const { read, examples } of bodies)
    for (const { value } of Object.values(examples)) expect(read(value)).toHaveProperty('value');
  const sent = [
    ...partnerOperations.flatMap(({ answers }) => Object.values(answers)),
    ['', applicationEventSchema, applicationEventExamples] as const,
    ['', testEventSchema, testEventExamples] as const,
  ];
  for (const [, schema, examples] of sent) {
    const values = Object.values(examples ?? {}).map(({ value }) => value);
    expect(values).not.toEqual([]);
    for (const value of values) expect((schema as z.ZodObject).strict().parse(value)).toEqual(value);
  }
});

test('the examples of filters, which tools such as Postman send as they are, are taken all together', async () => {
  const { parameters } = committed.paths['/v1/notifications'].get;
  const examples = parameters.flatMap(({ name, schema: { examples: shown = [] } = {} }) =>
    shown.slice(0, 1).map((example) => [name, String(example)] as const),
  );
  expect(examples.map(([name]) => name)).toEqual(
    expect.arrayContaining(['sequence', 'created_from', 'created_to']),
  );
  expect((await api.get(`/v1/notifications?${stringify(Object.fromEntries(examples))}`)).status).toBe(200);
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
  const sent = quoteRequest.examples['basket']?.value;
  const { value: expected } = quoteExamples.offers;
  const answer = await api.call({ body: sent });
  const text = answer.text.replaceAll(answer.body.data.service_quote_id, expected.data.service_quote_id);
  const received = JSON.parse(text);
  expect(quoteResponseSchema.parse(expected)).toEqual(expected);
  expect(received.data.summary).toEqual(expected.data.summary);
  expect(received.data.products[0]).toEqual(expected.data.products[0]);
});

test('an undeclared field does not leave', () => {
  const serialize = serializer(z.object({ open: z.string() }));
  expect(serialize({ open: 'yes', hidden: 'no' } as { open: string })).toBe('{"open":"yes"}');
});

test('a URL that we accept is written as any JSON writer would, with every character that may stand in one', () => {
  const serialize = serializer(z.object({ url: z.string().meta({ pattern: FINANCE_URL_PATTERN }) }));
  const characters = Array.from({ length: 0x1_1000 }, (_, code) => String.fromCodePoint(code));
  const accepted = characters.filter((one) => financeUrlFault(`https://shop.example/?${one}`) === null);
  expect(accepted.length).toBeGreaterThan(60_000);
  const url = `https://shop.example/?${accepted.join('')}`;
  expect(serialize({ url })).toBe(JSON.stringify({ url }));
});
