import { X509CertificateGenerator } from '@peculiar/x509';
import { execFileSync } from 'node:child_process';
import { KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../../../dev/ports';
import { createAuthority, issueCertificate } from '../../../runtime/certificates/issue';
import { useApi } from '../../../test/support/api';
import { until } from '../../../testbed/until';
import { storeRow } from '../../../test/support/partner-events';
import { startNode, type ProjectProcess } from '../../../testbed/project-process';
import { runDirectory } from '../../../testbed/temporary-directory';
import { VALID } from '../../../testbed/tls';
import { BAD_SECRETS, keyMaterialOf, SECRET } from '../../../test/examples/forgeries';
import { EXAMPLES, verifyIn } from '../../../test/examples/verifiers';
import { installPackage } from './built-package';

/** `partner-finance listen` as a process of its own, between the real service, which has no endpoint, and a receiver on this machine. */
// Eight processes one after the other would be slowed down by the pace of one key.
const api = useApi({ environment: { RATE_LIMIT_PER_MINUTE: '10000' } });
const folder = runDirectory('listen');
const running: ProjectProcess[] = [];
/** A test that has failed at its limit may still be at work: what it starts must not reach the next one. */
let nth = 0;

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}
const received: Received[] = [];
/** What the receiver answers; none: it does not. */
let answer: (one: Received) => number | null = () => 204;
const receiver = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const one = { headers: request.headers, body: Buffer.concat(chunks).toString() };
    received.push(one);
    const status = answer(one);
    if (status !== null) response.writeHead(status).end();
  });
});
beforeAll(async () => {
  await installPackage(folder);
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
});
beforeEach(() => {
  nth += 1;
  received.length = 0;
  answer = () => 204;
});
afterEach(() => Promise.all(running.splice(0).map((one) => one.end('SIGKILL'))));
afterAll(() => void receiver.close());

const url = () => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/webhooks`;
const COMMAND = 'node_modules/.bin/partner-finance';
function start(position: string, key = api.keys.test, to = url(), node: string[] = []): ProjectProcess {
  writeFileSync(join(folder, 'ca.pem'), api.ca);
  const process = startNode([...node, COMMAND, 'listen', '--forward-to', to, '--position', position], {
    cwd: folder,
    environment: {
      API_KEY: key,
      BASE_URL: `https://127.0.0.1:${api.port}`,
      NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'),
    },
  });
  running.push(process);
  return process;
}
async function tell(story: string): Promise<string> {
  const { body } = await api.quote();
  const wanted = { service_quote_id: body.data.service_quote_id, story };
  const opened = await api.call({ path: '/v1/sandbox/credit-applications', body: wanted });
  return opened.body.data.credit_application_id as string;
}
/** The sequences of an application in the order in which they arrived. */
const arrived = (id: string) =>
  received
    .map(({ body }) => JSON.parse(body))
    .filter(({ data }) => data.credit_application_id === id)
    .map(({ sequence }) => sequence as number);
const upTo = (last: number) => Array.from({ length: last }, (_, at) => at + 1);

const run = (args: readonly string[], environment: Record<string, string> = {}) => {
  const process = startNode([COMMAND, ...args], { cwd: folder, environment });
  return process.ended.then((code) => ({ code, output: process.output() }));
};

test('says how it is used, and what is wrong with how it was', async () => {
  const npx = execFileSync('npx', ['--no-install', 'partner-finance', '--help'], { cwd: folder }).toString();
  for (const part of ['--forward-to', '--position', 'API_KEY', 'BASE_URL']) expect(npx).toContain(part);
  const ready = { API_KEY: 'sk_test_x', BASE_URL: 'https://quotes.example' };
  const to = ['listen', '--forward-to', 'http://localhost:3000/'];
  for (const [args, environment, said] of [
    [[], ready, '`listen`'],
    [['listen'], ready, '--forward-to'],
    [['listen', '--forward-to', 'localhost:3000'], ready, '--forward-to'],
    [[...to, '--forward', 'x'], ready, '--forward'],
    [to, { ...ready, API_KEY: 'sk_live_x' }, 'sandbox key'],
    [to, { ...ready, BASE_URL: 'http://quotes.example' }, 'BASE_URL'],
  ] as const) {
    const { code, output } = await run(args, environment);
    expect([args, code, output]).toEqual([args, 2, expect.stringContaining(said)]);
  }
});

test('a key that is not accepted ends it, and so does a position that cannot be read', async () => {
  const wrong = start('wrong.json', 'sk_test_wrong');
  expect(await wrong.ended).toBe(1);
  writeFileSync(join(folder, 'broken.json'), '{');
  const broken = start('broken.json');
  expect(await broken.ended).toBe(1);
  expect(broken.output()).toContain('broken.json cannot be read');
});

test('a position whose secret is none ends it, before anything is signed with that', async () => {
  // A public key, which the client's verifier takes, is no secret either.
  const secrets = [...BAD_SECRETS, ['a list', `${SECRET} ${SECRET}`] as const];
  for (const [name, secret] of secrets) {
    const position = { secret, from: new Date(0).toISOString(), done: {} };
    writeFileSync(join(folder, 'no-secret.json'), JSON.stringify(position));
    const listening = start('no-secret.json');
    expect([name, await listening.ended]).toEqual([name, 1]);
    expect(listening.output()).toContain('no-secret.json cannot be read');
    expect(listening.output()).not.toContain('Secret:');
    for (const part of keyMaterialOf(secret)) expect([name, listening.output()]).not.toContain(part);
  }
  expect(received).toEqual([]);
});

test('forwards the events of an application in order, in their own bytes, signed in both forms', async () => {
  const listening = start('order.json');
  await listening.waitFor(/^Secret: whsec_/m);
  const [first, second] = [await tell('refunded'), await tell('declined')];
  await until(() => arrived(second).length === 3, 'all have arrived', 30_000);
  expect([arrived(first), arrived(second)]).toEqual([upTo(9), upTo(3)]);
  const rows = await api.database.sql`
    select event_id, body from notifications where application_id in (${first}, ${second}) order by application_id, sequence`;
  const stored = new Map(rows.map((row) => [row['event_id'], row['body']]));
  for (const { headers, body } of received) {
    expect(body).toBe(stored.get(headers['webhook-id']));
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
  }
  const known = /^Secret: (\S+)$/m.exec(listening.output())?.[1];
  const { headers = {}, body = '' } = received[0] ?? {};
  const given = { headers, body, known, now: Math.floor(Date.now() / 1_000) };
  for (const form of ['Service-Signature', 'Standard Webhooks'] as const)
    expect(await verifyIn(EXAMPLES, 'Node', { ...given, form })).toBe('verified');
  expect(listening.output()).toMatch(new RegExp(`${first} 9 credit_application.refunded -> 204 in \\d+ ms`));
});

test('continues without a gap after a kill -9 at each event, with the same secret', async () => {
  const id = await tell('completed');
  const own = nth;
  const secrets = new Set<string | undefined>();
  /** At a new event before its answer, as soon as it is answered, and a moment later: before the next one in most runs. */
  const KILLS = ['before', 0, 5] as const;
  let kills = 0;
  for (let last = 0; last < 7 && nth === own; last = Math.max(0, ...arrived(id))) {
    const listening = start('killed.json');
    const when = KILLS[kills % KILLS.length];
    const already = last;
    answer = ({ body }) => {
      const { data, sequence } = JSON.parse(body);
      // It gets the events of the tests before as well.
      if (data.credit_application_id !== id || sequence <= already || listening.child.killed) return 204;
      const kill = () => listening.child.kill('SIGKILL');
      if (when === 'before') return kill() ? null : 204;
      setTimeout(kill, when);
      return 204;
    };
    await until(() => listening.child.signalCode !== null, `killed at ${already + 1}`, 30_000);
    kills += 1;
    secrets.add(/^Secret: (\S+)$/m.exec(listening.output())?.[1]);
  }
  expect(kills).toBeGreaterThan(4);
  answer = () => 204;
  start('killed.json');
  await until(() => arrived(id).includes(8), 'all have arrived', 30_000);
  const sequences = arrived(id);
  expect([...new Set(sequences)]).toEqual(upTo(8));
  // In order, each once more at most for every kill.
  expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
  expect(secrets.size).toBe(1);
});

test('an event that is refused is sent again, and later ones of its application wait, others do not', async () => {
  const listening = start('refused.json');
  const stuck = await tell('declined');
  let refusals = 0;
  answer = ({ body }) => {
    const { data, sequence } = JSON.parse(body);
    return data.credit_application_id === stuck && sequence === 2 && (refusals += 1) < 3 ? 401 : 204;
  };
  const other = await tell('declined');
  await until(() => arrived(stuck).includes(3), 'all have arrived');
  expect(arrived(stuck)).toEqual([1, 2, 2, 2, 3]);
  expect(arrived(other)).toEqual([1, 2, 3]);
  const position = (at: number, id: string) =>
    received.findIndex(
      ({ body }) => JSON.parse(body).data.credit_application_id === id && JSON.parse(body).sequence === at,
    );
  expect(position(3, other)).toBeLessThan(position(3, stuck));
  expect(listening.output()).toContain('not with public keys');
});

/** `localhost` as most machines have it. */
const IN_BOTH_FAMILIES = `import dns from 'node:dns';
  dns.lookup = (name, options, done) => done(null, [{ address: '::1', family: 6 }, { address: '127.0.0.1', family: 4 }]);`;

test('says why no answer comes of a receiver that does not run', async () => {
  const port = await freePort();
  const node = ['--import', `data:text/javascript,${encodeURIComponent(IN_BOTH_FAMILIES)}`];
  const listening = start('down.json', api.keys.test, `http://localhost:${port}/`, node);
  await tell('declined');
  await listening.waitFor(/-> fetch failed/);
  expect(listening.output()).toContain(
    `-> fetch failed: connect ECONNREFUSED ::1:${port}, connect ECONNREFUSED 127.0.0.1:${port}`,
  );
});

async function selfSigned() {
  const signingAlgorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await crypto.subtle.generateKey(signingAlgorithm, true, ['sign', 'verify']);
  const wanted = { ...VALID, name: 'CN=localhost', serialNumber: '01', keys, signingAlgorithm };
  const cert = (await X509CertificateGenerator.createSelfSigned(wanted)).toString('pem');
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString();
  return { cert, key };
}

test("says how a receiver's certificate is made known, whoever signed it", async () => {
  const authority = await createAuthority('Development authority', VALID);
  const issued = await issueCertificate(authority, [{ type: 'dns', value: 'localhost' }], VALID);
  const withAuthority = { ...issued, cert: `${issued.cert}\n${authority.cert}` };
  await tell('declined');
  for (const { cert, key } of [await selfSigned(), issued, withAuthority]) {
    const server = createTlsServer({ cert, key }, (_, response) => response.end());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      const listening = start(`certificate-${port}.json`, api.keys.test, `https://localhost:${port}/`);
      await listening.waitFor(/-> fetch failed/);
      expect(listening.output()).toMatch(/-> fetch failed: .* certificate.*NODE_EXTRA_CA_CERTS/);
    } finally {
      server.close();
    }
  }
});

test('finds an event that became visible after later ones, and keeps the order of its application', async () => {
  start('late.json');
  const { partnerId } = api;
  const store = (applicationId: string, sequence: number, secondsAgo: number) => {
    const data = { credit_application_id: applicationId };
    const body = JSON.stringify({ sequence, data });
    return storeRow(api.database, {
      partnerId,
      applicationId,
      sequence,
      body,
      state: 'held',
      at: new Date(Date.now() - secondsAgo * 1_000),
    });
  };
  const [one, another] = ['app_01KAF1Z4Q0T6M5S7Y2W3X4V5B1', 'app_01KAF1Z4Q0T6M5S7Y2W3X4V5B2'] as const;
  await store(one, 1, 10);
  await until(() => arrived(one).length === 1, 'the first has arrived', 30_000);
  const polls = () => api.logs.filter((line) => line.includes('"route":"/v1/notifications"')).length;
  await store(one, 3, 0);
  const before = polls();
  await until(() => polls() > before, 'it was read', 10_000);
  // Four minutes older than what has been forwarded.
  await store(another, 1, 240);
  await store(one, 2, 5);
  await until(() => arrived(one).length === 3 && arrived(another).length === 1, 'all have arrived', 30_000);
  expect(arrived(one)).toEqual([1, 2, 3]);
});
