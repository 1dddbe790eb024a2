import { readFileSync } from 'node:fs';
import { seedDemo } from '../../dev/seed';
import { startTestApi } from '../support/api';
import { createTestDatabase } from '../support/database';

/** On the data that `npm start` brings. */
test('the README’s request is answered with a summary and as many products as the README says', async () => {
  const readme = readFileSync(`${__dirname}/../../README.md`, 'utf8');
  const database = await createTestDatabase();
  const { apiKeys } = await seedDemo(database.url, undefined);
  const api = await startTestApi({ databaseUrl: database.url, keys: apiKeys });
  const [, sent = ''] = /-d '(\{.*\})'/.exec(readme) ?? [];
  const { body } = await api.call({ body: JSON.parse(sent) });
  expect(body).toMatchObject({ success: true, data: { summary: { display: true } } });
  expect(body.data.products).toHaveLength(9);
  expect(readme).toContain('nine products');
  await api.close();
  await database.close();
});
