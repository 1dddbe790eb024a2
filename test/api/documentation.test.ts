import { statusOf } from '../../api/errors';
import { errorCodes } from '../../contracts/errors';
import { openApiDocument } from '../../contracts/openapi';
import { QUOTE_REQUEST_EXAMPLES, QUOTE_RESPONSE_EXAMPLES } from '../../contracts/examples';
import { quoteResponseSchema } from '../../contracts/quote-response';
import committed from '../../contracts/openapi.json';
import { startTestApi, type TestApi } from '../support/api';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

test('the document is served without a key and is the committed one', async () => {
  const answer = await api.call({ method: 'GET', path: '/openapi.json', key: null });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual(committed);
  expect(openApiDocument()).toEqual(committed);
});

test('the page is served with a policy that lets nothing else in', async () => {
  const answer = await api.fetchText('/docs/');
  expect(answer.status).toBe(200);
  expect(answer.text).toContain('swagger-ui');
  expect(answer.headers['content-security-policy']).toContain("default-src 'self'");
  expect(answer.headers['x-request-id']).toMatch(/^rq_/);
});

/** Until the path of test notifications is in the document. */
const notYet: readonly string[] = ['WEBHOOK_NOT_REGISTERED', 'TEST_NOTIFICATION_LIMIT_REACHED'];

test('every error code has an example under its own status', () => {
  const responses = committed.paths['/v1/finance-quote'].post.responses;
  const documented = Object.entries(responses).flatMap(([status, response]) =>
    Object.keys(response.content['application/json'].examples).map((code) => `${status} ${code}`),
  );
  for (const code of errorCodes.filter((code) => !notYet.includes(code))) {
    expect(documented).toContain(`${statusOf(code)} ${code}`);
  }
});

test('the example request is answered like the example response', async () => {
  const { value: sent } = QUOTE_REQUEST_EXAMPLES.basket;
  const { value: expected } = QUOTE_RESPONSE_EXAMPLES.offers;
  const answer = await api.call({ body: sent });
  const text = answer.text.replaceAll(answer.body.data.service_quote_id, expected.data.service_quote_id);
  const received = JSON.parse(text);
  expect(quoteResponseSchema.parse(expected)).toEqual(expected);
  expect(received.data.summary).toEqual(expected.data.summary);
  expect(received.data.products[0]).toEqual(expected.data.products[0]);
});
