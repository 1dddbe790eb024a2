import { Agent, request } from 'undici';
import { issueKey } from '../../db/keys/api-key-changes';
import { createPartner } from '../../db/catalogue/partners';
import { workerDeployment } from '../../runtime/temporal/worker-deployments';
import { goodQuote } from '../support/api';
import { startApiProcess, type ApiProcess } from '../support/api-process';
import { openTestDatabase, type OpenTestDatabase } from '../support/database';
import { until } from '../support/delivery';
import { freePort } from '../support/free-port';
import { startHaProxy, type HaProxy } from '../support/haproxy';
import { addEndpoint, newKeyRingText, storeStatus } from '../support/notifications';
import { randomTaskQueue, testTemporal } from '../support/temporal';
import { startWebhookReceiver, verifySignatures, type WebhookReceiver } from '../support/webhook-receiver';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process';
import { startLoad } from './load';
import { fileNeeds } from '../support/needs';

fileNeeds('HAProxy');

/** Two API processes behind HAProxy as docker-compose.yml has them, and two workers with the build of their release. */
const PARTNER = goodQuote.partner_id;
const temporal = testTemporal();
const keys = newKeyRingText();
const taskQueue = randomTaskQueue('rolling');
let database: OpenTestDatabase;
let receiver: WebhookReceiver;
let proxy: HaProxy;
let key: string;
let secret: string;
let ports: { port: number; internalPort: number }[];
const apis: ApiProcess[] = [];
const workers: WorkerProcess[] = [];

const startApi = async (nth: number) => {
  apis[nth] = await startApiProcess({
    databaseUrl: database.url,
    ...ports[nth],
    environment: {
      TLS_CERT_FILE: '',
      TLS_KEY_FILE: '',
      TRUSTED_PROXIES: '127.0.0.1',
      SHUTDOWN_DELAY_MS: '3000',
      DATABASE_TIMEOUT_MS: '20000',
    },
  });
};
const startWorker = async (nth: number, buildId: string) => {
  workers[nth] = await startWorkerProcess({
    databaseUrl: database.url,
    temporal,
    taskQueue,
    receiver,
    keys,
    environment: { WORKER_DEPLOYMENT: taskQueue, WORKER_BUILD_ID: buildId },
  });
  await workers[nth].ready();
};
/** `ops deployments set-current` */
const setCurrent = (buildId: string) => {
  const { address, namespace } = temporal;
  const orders = workerDeployment({ namespace, connection: { address } }, taskQueue);
  // Its pollers may be a moment behind its readiness.
  return until(
    async () => (await orders.setCurrent(buildId)).kind === 'done',
    `${buildId} is current`,
    60_000,
  );
};

beforeAll(async () => {
  database = await openTestDatabase({ statementTimeoutMs: 0 });
  receiver = await startWebhookReceiver();
  await createPartner(database.db, { partnerId: PARTNER, name: 'Example' });
  const wanted = { partnerId: PARTNER, environment: 'sandbox', expiresInSeconds: null } as const;
  ({ key } = await database.db.transaction((tx) => issueKey(tx, wanted)));
  ({ secret } = await addEndpoint(database, { partnerId: PARTNER, url: receiver.url, keyRing: keys }));
  ports = [];
  for (let nth = 0; nth < 2; nth += 1) ports.push({ port: await freePort(), internalPort: await freePort() });
  proxy = await startHaProxy([ports[0]!, ports[1]!]);
  await Promise.all([startApi(0), startApi(1), startWorker(0, 'old'), startWorker(1, 'old')]);
  await setCurrent('old');
  await allUp();
}, 300_000);

afterAll(async () => {
  await Promise.all([...apis, ...workers].map((one) => one.close()));
  await proxy?.close();
  await receiver?.close();
  await database?.close();
});

const allUp = () => until(async () => (await proxy.up()).length === 2, 'the proxy sends to both', 30_000);

test('without TLS the proxy passes on the refusal of the contract', async () => {
  const answer = await request(`${proxy.plainUrl}/v1/finance-quote`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'x-forwarded-proto': 'https' },
    body: JSON.stringify(goodQuote),
  });
  expect(answer.statusCode).toBe(400);
  expect(await answer.body.json()).toMatchObject({ error: { message: 'HTTPS is required.' } });
});

test('a rolling restart of API processes and workers loses no request and no notification', async () => {
  const load = startLoad({
    url: proxy.url,
    ca: proxy.ca,
    key,
    body: JSON.stringify(goodQuote),
    clients: 8,
  });
  const agent = new Agent({ connect: { ca: proxy.ca } });
  const sent: string[] = [];
  const testStatuses: number[] = [];
  let stopping = false;
  const notifying = (async () => {
    for (let nth = 0; !stopping; nth += 1) {
      sent.push((await storeStatus(database, { partnerId: PARTNER })).eventId);
      if (nth % 10 === 0 && testStatuses.length < 40) {
        const answer = await request(`${proxy.url}/v1/notifications/test`, {
          method: 'POST',
          dispatcher: agent,
          headers: { authorization: `Bearer ${key}` },
        });
        testStatuses.push(answer.statusCode);
        await answer.body.dump();
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();
  const serving = async () => {
    const before = load.answered();
    await until(() => load.answered() > before + 50, 'quotes are answered', 30_000);
  };

  let restarts = 0;
  for (const nth of [0, 1]) {
    await serving();
    expect(await apis[nth]!.end('SIGTERM')).toBe(0);
    await serving();
    await startApi(nth);
    await allUp();
    restarts += 1;
  }
  // As docs/operations/production.md has it: one by one, and the new build becomes current in between.
  for (const nth of [0, 1]) {
    expect(await workers[nth]!.end('SIGTERM')).toBe(0);
    await startWorker(nth, 'new');
    if (nth === 0) await setCurrent('new');
    await serving();
    restarts += 1;
  }
  stopping = true;
  await notifying;
  const { ids, lost } = await load.stop();
  await agent.close();

  const open = () => database.sql`select 1 from notifications where state in ('pending', 'started')`;
  await until(async () => (await open()).length === 0, 'every notification has ended', 60_000);
  const [stored] = await database.sql<{ quotes: number; delivered: number; counted: number }[]>`
    select (select count(*)::int from quotes where quote_id = any(${ids as string[]})) as quotes,
      (select count(*)::int from notifications where state = 'delivered') as delivered,
      (select sum(delivered)::int from monthly_counts) as counted`;
  const times = new Map<unknown, number>();
  for (const one of receiver.received) {
    verifySignatures(one, secret);
    times.set(one.headers['webhook-id'], (times.get(one.headers['webhook-id']) ?? 0) + 1);
  }
  const notified = sent.length + testStatuses.length;
  const twice = [...times.values()].filter((count) => count > 1).length;
  console.log(
    `rolling restart: ${ids.length + lost.length} quotes, ${notified} notifications, ${restarts} restarts: ` +
      `${lost.length} requests lost, ${sent.filter((id) => !times.has(id)).length} notifications lost, ${twice} sent twice`,
  );
  expect(lost).toEqual([]);
  expect(testStatuses.filter((status) => status < 200 || status > 299)).toEqual([]);
  expect(stored).toEqual({ quotes: ids.length, delivered: notified, counted: notified });
  expect(sent.filter((id) => !times.has(id))).toEqual([]);
}, 180_000);

test('with no API process left the proxy answers in the form of the contract', async () => {
  await Promise.all(apis.map((api) => api.end('SIGKILL')));
  const agent = new Agent({ connect: { ca: proxy.ca } });
  const answer = await request(`${proxy.url}/v1/finance-quote`, {
    method: 'POST',
    dispatcher: agent,
    headers: { 'x-request-id': 'ours-1' },
    body: '{}',
  });
  expect(answer.statusCode).toBe(500);
  expect(answer.headers).toMatchObject({
    'x-request-id': 'ours-1',
    'content-type': 'application/json; charset=utf-8',
  });
  expect(await answer.body.json()).toEqual({
    success: false,
    error: { code: 'INTERNAL_SERVER_ERROR', message: expect.any(String) },
  });
  await agent.close();
}, 60_000);
