// What a partner's code does, run by Node, Deno, Bun and an edge runtime alike: the path of the built package is the first argument.
// It needs no network: the transport is a function, the signatures are published vectors and those of WebCrypto itself.

/** @param library the package's module. @returns what should be equal everywhere. */
export async function smoke({ createClient, createWebhookVerifier, verifyWebhook, ApiError }) {
  const pair = await crypto.subtle.generateKey({ name: 'Ed25519' }, true, ['sign', 'verify']);
  const raw = new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey));
  const base64 = (bytes) => btoa(String.fromCharCode(...bytes));
  const publicKey = `whpk_${base64(raw)}`;
  const secretBytes = crypto.getRandomValues(new Uint8Array(32));
  const sha256 = { name: 'HMAC', hash: 'SHA-256' };
  const hmac = await crypto.subtle.importKey('raw', secretBytes, sha256, false, ['sign']);
  const secret = `whsec_${base64(secretBytes)}`;

  const body = '{"event_id":"evt_1","event_type":"credit_application.test"}';
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signed = new TextEncoder().encode(`evt_1.${timestamp}.${body}`);
  const [v1, v1a] = await Promise.all([
    crypto.subtle.sign('HMAC', hmac, signed),
    crypto.subtle.sign({ name: 'Ed25519' }, pair.privateKey, signed),
  ]);
  const headers = new Headers({
    'webhook-id': 'evt_1',
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${base64(new Uint8Array(v1))} v1a,${base64(new Uint8Array(v1a))}`,
  });
  const verdict = async (promise) => (await promise.catch(({ name }) => ({ event_id: name }))).event_id;

  const answer = (status, answered, more = {}) => {
    const headers = { 'content-type': 'application/json', ...more };
    return new Response(JSON.stringify(answered), { status, headers });
  };
  const calls = [];
  let failures = 1;
  const client = createClient({
    baseUrl: 'https://quotes.example/',
    apiKey: 'key',
    partnerId: 'P100001',
    fetch: async (request) => {
      const { pathname, searchParams } = new URL(request.url);
      calls.push(`${request.method} ${pathname}`);
      if (pathname === '/v1/webhook-keys')
        return answer(200, { success: true, data: { keys: [{ public_key: publicKey }] } });
      if (request.method === 'POST') {
        const error = { code: 'INVALID_REQUEST', message: (await request.json()).partner_id };
        return answer(400, { success: false, error }, { 'x-request-id': 'rq_1' });
      }
      failures -= 1;
      if (failures >= 0) return answer(503, {});
      const last = searchParams.get('cursor') === 'next';
      const notifications = [{ notification_id: last ? 'ntf_2' : 'ntf_1' }];
      return answer(200, { success: true, data: { notifications, next_cursor: last ? null : 'next' } });
    },
  });
  const listed = [];
  for await (const one of client.listNotifications()) listed.push(one.notification_id);
  const refused = await client.quote({ merchant_id: 'M000001' }).catch((error) => error);
  return {
    secret: await verdict(verifyWebhook(body, headers, secret)),
    publicKey: await verdict(verifyWebhook(new TextEncoder().encode(body), headers, publicKey)),
    listedKeys: await verdict(createWebhookVerifier(client).verify(body, headers)),
    tampered: await verdict(verifyWebhook(`${body} `, headers, [secret, publicKey])),
    listed,
    refused: [refused instanceof ApiError, refused.code, refused.message, refused.requestId],
    calls,
  };
}

/** The same everywhere. */
export const EXPECTED = {
  secret: 'evt_1',
  publicKey: 'evt_1',
  listedKeys: 'evt_1',
  tampered: 'WebhookVerificationError',
  listed: ['ntf_1', 'ntf_2'],
  refused: [true, 'INVALID_REQUEST', 'P100001', 'rq_1'],
  calls: [
    'GET /v1/notifications',
    'GET /v1/notifications',
    'GET /v1/notifications',
    'POST /v1/finance-quote',
    'GET /v1/webhook-keys',
  ],
};
