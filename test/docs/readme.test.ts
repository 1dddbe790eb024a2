import { readFileSync } from 'node:fs';
import { productItemSchema, quoteResponseSchema } from '../../contracts/quote-response';
import { testNotificationResponseSchema } from '../../contracts/notifications';
import { seedDemo } from '../../dev/seed';
import { startTestApi, type TestApi } from '../support/api';
import { createTestDatabase, type TestDatabase } from '../support/database';

// The answers that the README shows are those of the service, on the data that `npm start` brings.
const readme = readFileSync(`${__dirname}/../../README.md`, 'utf8');
const samples = [...readme.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = '']) => JSON.parse(text));
const sample = samples.find(({ data }) => 'products' in data);

let database: TestDatabase;
let api: TestApi;

beforeAll(async () => {
  database = await createTestDatabase();
  const { apiKeys } = await seedDemo(database.url, undefined);
  api = await startTestApi({ databaseUrl: database.url, keys: apiKeys });
});
afterAll(async () => {
  await api.close();
  await database.close();
});

test('the product that the README shows has every field of the contract', () => {
  for (const product of sample.data.products)
    expect(Object.keys(product)).toEqual(Object.keys(productItemSchema.shape));
  expect(quoteResponseSchema.strict().parse(sample)).toEqual(sample);
});

test('the README’s request is answered as the README shows', async () => {
  const [, sent = ''] = /-d '(\{.*\})'/.exec(readme) ?? [];
  const { body } = await api.call({ body: JSON.parse(sent) });
  const { data } = JSON.parse(
    JSON.stringify(body).replaceAll(body.data.service_quote_id, sample.data.service_quote_id),
  );
  expect(data.summary).toEqual(sample.data.summary);
  expect(data.merchant_reference).toBe(sample.data.merchant_reference);
  const [shown] = sample.data.products;
  expect(data.products).toContainEqual(shown);
  expect(data.products).toHaveLength(9);
  expect(readme).toContain('nine products');
});

test('the answer to a test notification that the README shows fits the contract, with every field', () => {
  const shown = samples.find(({ data }) => 'notification_id' in data);
  expect(testNotificationResponseSchema.strict().parse(shown)).toEqual(shown);
});
