import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import https from 'node:https';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { Agent, request } from 'undici';
import { startReceiver, type Delivery, type RunningReceiver } from '../../dev/receiver';
import { createTestTls } from '../support/tls';

const secret = () => `whsec_${randomBytes(32).toString('base64')}`;
const current = secret();
const older = secret();
const BODY = '{"event_type":"credit_application.test","event_id":"evt_1","note":"£ <b>"}';

let receiver: RunningReceiver;
let dispatcher: Agent;
let trusted: string;

beforeAll(async () => {
  const { ca, cert, key } = await createTestTls();
  receiver = await startReceiver({
    port: 0,
    tls: { cert, key },
    secrets: () => [current, older],
    now: () => new Date(),
  });
  dispatcher = new Agent({ connect: { ca } });
  trusted = ca;
});

beforeEach(async () => {
  await behave({ mode: 'ok' });
});

afterAll(async () => {
  await receiver.close();
  await dispatcher.destroy();
});

interface Signing {
  readonly at?: Date;
  readonly standard?: string;
  readonly service?: readonly string[];
}

/** Signed by the published package and by the definition of `Service-Signature`, not by code of ours. */
function signed(body: string, { at = new Date(), standard = current, service = [standard] }: Signing = {}) {
  const t = Math.floor(at.getTime() / 1_000);
  const v1 = service.map((each) => {
    const key = Buffer.from(each.slice('whsec_'.length), 'base64');
    return `v1=${createHmac('sha256', key).update(`${t}.${body}`).digest('hex')}`;
  });
  return {
    'content-type': 'application/json',
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(t),
    'webhook-signature': new Webhook(standard).sign('evt_1', at, body),
    'service-signature': [`t=${t}`, ...v1].join(','),
  };
}

async function post(path: string, body: string, headers: Record<string, string>) {
  const answer = await request(`${receiver.url}${path}`, { method: 'POST', dispatcher, body, headers });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

async function deliver(body = BODY, headers: Record<string, string> = signed(body)): Promise<number> {
  return (await post('/webhooks', body, headers)).status;
}

async function behave(behaviour: object): Promise<number> {
  return (await post('/behaviour', JSON.stringify(behaviour), { 'content-type': 'application/json' })).status;
}

async function get(path: string): Promise<string> {
  return (await request(`${receiver.url}${path}`, { dispatcher })).body.text();
}

async function listed(): Promise<Delivery[]> {
  return (JSON.parse(await get('/deliveries')) as { deliveries: Delivery[] }).deliveries;
}

test('verifies a delivery and lists it, without signatures and credentials', async () => {
  const headers = { ...signed(BODY), authorization: 'Bearer hidden-token' };
  expect(await deliver(BODY, headers)).toBe(200);
  const [newest] = await listed();
  expect(newest).toMatchObject({
    eventId: 'evt_1',
    eventType: 'credit_application.test',
    verified: true,
    why: null,
    answered: 200,
    body: BODY,
  });
  const everything = (await get('/deliveries')) + (await get('/'));
  for (const value of ['hidden-token', headers['webhook-signature'], headers['service-signature']])
    expect(everything).not.toContain(value);
});

test('verifies while a secret is rotated: any of several signatures, any of its secrets', async () => {
  const stranger = secret();
  expect(await deliver(BODY, signed(BODY, { service: [stranger, current] }))).toBe(200);
  expect(await deliver(BODY, signed(BODY, { standard: older }))).toBe(200);
  // One secret must have made both.
  expect(await deliver(BODY, signed(BODY, { standard: current, service: [older] }))).toBe(401);
});

const longAgo = new Date(Date.now() - 6 * 60_000);
test.each([
  ['another secret', BODY, signed(BODY, { standard: secret() }), /Standard Webhooks: /],
  ['a changed body', BODY.replace('evt_1', 'evt_2'), signed(BODY), /Standard Webhooks: /],
  ['an old timestamp', BODY, signed(BODY, { at: longAgo }), /Standard Webhooks: .*too old/],
  ['a Service-Signature of another', BODY, signed(BODY, { service: [secret()] }), /no v1 fits/],
  ['no v1', BODY, signed(BODY, { service: [] }), /no v1 fits/],
  ['no Service-Signature', BODY, { ...signed(BODY), 'service-signature': '' }, /missing, or without t=/],
  [
    'an old t beside a new timestamp',
    BODY,
    { ...signed(BODY), 'service-signature': signed(BODY, { at: longAgo })['service-signature'] },
    /too far/,
  ],
  ['nothing at all', BODY, {}, /Standard Webhooks: /],
])('answers 401 to %s and says why', async (_what, body, headers, why) => {
  expect(await deliver(body, headers)).toBe(401);
  expect((await listed())[0]).toMatchObject({ verified: false, why: expect.stringMatching(why) });
});

test('escapes all that came from outside', async () => {
  const body = `{"event_type":"<script>alert('1')</script>"}`;
  await deliver(body, { ...signed(body), 'x-note': '<img src=x>', 'webhook-id': '"><i>' });
  const page = await get('/');
  expect(page).toContain('&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;');
  expect(page).toContain('&lt;img src=x&gt;');
  for (const raw of ['<script>', '<img', '"><i>']) expect(page).not.toContain(raw);
});

test('answers a chosen status, fails some times, and is told so by the buttons of its page too', async () => {
  await behave({ mode: 'status', status: 410 });
  expect([await deliver(), await deliver()]).toEqual([410, 410]);
  await behave({ mode: 'fail-times', status: 503, times: 2 });
  expect([await deliver(), await deliver(), await deliver()]).toEqual([503, 503, 200]);

  const form = { 'content-type': 'application/x-www-form-urlencoded', origin: receiver.url };
  const answer = await post('/behaviour', 'mode=fail-times&status=500&times=1', form);
  expect([answer.status, answer.headers['location']]).toEqual([303, '/']);
  expect(await get('/')).toContain('answers 500 1 more times');
  expect([await deliver(), await deliver()]).toEqual([500, 200]);
});

test('hangs, and still lists what came', async () => {
  await behave({ mode: 'hang' });
  const body = BODY.replace('evt_1', 'evt_hanging');
  const impatient = new AbortController();
  const hanging = request(receiver.webhookUrl, {
    method: 'POST',
    dispatcher,
    body,
    headers: signed(body),
    signal: impatient.signal,
  });
  const silence = hanging.then(
    () => 'answered',
    () => 'gave up',
  );
  while ((await listed())[0]?.body !== body) await sleep(20);
  expect(await Promise.race([silence, sleep(200, 'silent')])).toBe('silent');
  expect((await listed())[0]).toMatchObject({ verified: true, answered: null });
  impatient.abort();
  expect(await silence).toBe('gave up');
});

test('refuses a behaviour it does not know, one from another site, and a body that is too large', async () => {
  expect(await behave({ mode: 'explode' })).toBe(400);
  expect(await behave({ mode: 'status', status: 42 })).toBe(400);
  const foreign = { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://evil.example' };
  expect((await post('/behaviour', 'mode=hang', foreign)).status).toBe(403);
  expect(await deliver('x'.repeat(70_000))).toBe(413);
  expect((await post('/elsewhere', '', {})).status).toBe(404);
  expect(await deliver()).toBe(200);
});

test('keeps the last 200, newest first', async () => {
  for (let sent = 0; sent <= 200; sent += 1) await deliver(String(sent));
  const bodies = (await listed()).map(({ body }) => body);
  expect([bodies.length, bodies[0], bodies.at(-1)]).toEqual([200, '200', '1']);
});

test.each(['attacker.example', 'localhost.attacker.example:443', '127.0.0.1.nip.io', '[::1]'])(
  'a request for another host, %s, is not answered: its name may lead here',
  async (host) => {
    for (const method of ['GET', 'POST']) {
      const [answer] = (await once(
        // The certificate is taken as that of localhost, whatever host is named.
        https
          .request(receiver.url, { method, ca: trusted, servername: 'localhost', headers: { host } })
          .end(),
        'response',
      )) as [IncomingMessage];
      expect(answer.statusCode).toBe(421);
      expect(await text(answer)).not.toContain('<html');
    }
  },
);
