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

test('a repetition is a request of its own where Next.js answers equal ones of a page alike, but those with a signal', async () => {
  const answers = [Response.json({}, { status: 503 }), Response.json({ success: true, data: { keys: [] } })];
  const known = new Map<string, Response | undefined>();
  const real = globalThis.fetch;
  globalThis.fetch = async (resource, options) => {
    if (options?.signal) return answers.shift() as Response;
    const { url } = new Request(resource);
    if (!known.has(url)) known.set(url, answers.shift());
    return known.get(url)?.clone() as Response;
  };
  try {
    const client = create('sk_test_abc')();
    expect(await client.listWebhookKeys()).toEqual([]);
  } finally {
    globalThis.fetch = real;
  }
});
