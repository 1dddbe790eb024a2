import { createClient } from '../src/client';

const create = (apiKey: string) => () =>
  createClient({ baseUrl: 'https://quotes.example', apiKey, partnerId: 'P100001' });

test.each([
  'sk_test_abc\ndef',
  'sk_test_abc def',
  'Bearer sk_test_abc',
  'sk_test_abc\u200b',
  '“sk_test_abc”',
])('a key that no header can carry is refused at the start, and not shown: %j', (apiKey) => {
  expect(create(apiKey)).toThrow(/^apiKey has white space or a character beyond ASCII in it/);
});

test('a line break behind a key, as a file of a secret has one, does no harm', async () => {
  const sent: (string | null)[] = [];
  const fetch = async ({ headers }: Request) => {
    sent.push(headers.get('authorization'));
    return Response.json({ success: true, data: { keys: [] } });
  };
  const client = createClient({
    baseUrl: 'https://quotes.example',
    apiKey: 'sk_test_abc\n',
    partnerId: 'P100001',
    fetch,
  });
  await client.listWebhookKeys();
  expect(sent).toEqual(['Bearer sk_test_abc']);
});
