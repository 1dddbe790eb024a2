import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { generateWebhookSecret } from '../../db/endpoints/secrets';
import { freePort } from '../../dev/ports';
import { startNode, type ProjectProcess } from '../../testbed/project-process';
import { runDirectory } from '../../testbed/temporary-directory';
import { createTestTls, type TestTls } from '../../testbed/tls';
import { BAD_SECRETS, headersOf, keyMaterialOf } from './forgeries';

// The receiver that the partner guide prints, as a process of its own. The library signs, not our own code.

const secret = generateWebhookSecret();
const event = (sequence: number, status: string, credit_application_id = 'app_1') => ({
  event_id: `evt_${credit_application_id}_${sequence}`,
  event_type: `credit_application.${status}`,
  sequence,
  data: { credit_application_id, status },
});
type Event = ReturnType<typeof event>;

const folder = runDirectory('receive');
const files = { TLS_CERT_FILE: join(folder, 'cert.pem'), TLS_KEY_FILE: join(folder, 'key.pem') };
let tls: TestTls;
let port: number;
let receiver: ProjectProcess;

const start = (secrets: string | undefined, listenOn: number) =>
  startNode(['receive.mjs'], {
    cwd: join(__dirname, '../../examples/verify-webhook/node'),
    environment: {
      ...files,
      PORT: String(listenOn),
      ...(secrets !== undefined && { WEBHOOK_SECRETS: secrets }),
    },
  });

beforeAll(async () => {
  tls = await createTestTls();
  writeFileSync(files.TLS_CERT_FILE, tls.cert);
  writeFileSync(files.TLS_KEY_FILE, tls.key);
  port = await freePort();
  // Two blanks between two secrets: a slip in a rotation.
  receiver = start(`${generateWebhookSecret()}  ${secret} `, port);
  await receiver.waitFor(/listening on port/);
});
afterAll(() => receiver.end('SIGTERM'));

async function post(body: string, headers: Record<string, string> = {}): Promise<number | undefined> {
  const call = request({ host: '127.0.0.1', port, ca: tls.ca, method: 'POST', path: '/hooks', headers });
  call.end(body);
  const [response] = await once(call, 'response');
  response.resume();
  return response.statusCode;
}

function send(what: Event, { key = secret, at = new Date() } = {}): Promise<number | undefined> {
  const body = JSON.stringify(what);
  return post(body, {
    'webhook-id': what.event_id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': `v1a,AAAA ${new Webhook(key).sign(what.event_id, at, body)}`,
  });
}

/** Signed with the key that is nothing; the library refuses to. */
function forge(what: Event): Promise<number | undefined> {
  const message = {
    id: what.event_id,
    timestamp: Math.floor(Date.now() / 1_000),
    body: JSON.stringify(what),
  };
  return post(message.body, headersOf(message, 'Standard Webhooks', ''));
}

const stored = () => receiver.stdout().match(/^app_.*$/gm) ?? [];

test('stores each state once, and drops tests, repeated and late events with a 2xx', async () => {
  for (const one of [event(1, 'created'), event(1, 'created'), event(3, 'accepted'), event(2, 'submitted')])
    expect(await send(one)).toBe(204);
  expect(await send(event(1, 'test', 'app_0'))).toBe(204);
  expect(await send(event(1, 'created', 'app_2'))).toBe(204);
  await receiver.waitFor(/^app_2/m);
  expect(stored()).toEqual(['app_1 1 created', 'app_1 3 accepted', 'app_2 1 created']);
});

test('blanks around its secrets are no secret', async () => {
  expect(await forge(event(9, 'completed', 'app_3'))).toBe(401);
  expect(await send(event(1, 'created', 'app_4'))).toBe(204);
  await receiver.waitFor(/^app_4/m);
  expect(stored()).not.toContain('app_3 9 completed');
});

// The whole list is tried with its verifier in verify-webhook.system.ts.
const SOME = ['an unset variable', 'a prefix alone', '31 bytes', 'one of two that was cut off'];
test.each(BAD_SECRETS.filter(([name]) => SOME.includes(name)))(
  'does not start with %s',
  async (_name, secrets) => {
    const failed = start(secrets, await freePort());
    try {
      // A receiver that started prints that it listens, and does not end.
      await failed.waitFor(/listening on port|WEBHOOK_SECRETS: /);
      expect([failed.output(), await failed.ended]).toEqual([
        expect.stringMatching(/^WEBHOOK_SECRETS: .*\?\n$/),
        1,
      ]);
      for (const part of keyMaterialOf(secrets)) expect(failed.output()).not.toContain(part);
    } finally {
      await failed.end('SIGKILL');
    }
  },
);
