import { readFileSync } from 'node:fs';
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

test('the README’s request is answered as the README shows', async () => {
  const [, sent = ''] = /-d '(\{.*\})'/.exec(readme) ?? [];
  const { body } = await api.call({ body: JSON.parse(sent) });
  const { data } = JSON.parse(
    JSON.stringify(body).replaceAll(body.data.service_quote_id, sample.data.service_quote_id),
  );
  const { products } = sample.data;
  expect({ success: true, data: { ...data, products } }).toEqual(sample);
  // As text, so that the order of the fields counts.
  expect(data.products.map((one: unknown) => JSON.stringify(one))).toContain(JSON.stringify(products[0]));
  expect(data.products).toHaveLength(9);
  expect(readme).toContain('nine products');
});

test('the answer to a test notification that the README shows fits the contract, with every field', () => {
  const shown = samples.find(({ data }) => 'notification_id' in data);
  expect(testNotificationResponseSchema.strict().parse(shown)).toEqual(shown);
});
