import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { migrateDatabase } from '../../db/postgres/migrate';
import { issueKey, revokeKey } from '../../db/keys';
import { PARTNER_ID, startTestApi, type TestApi } from '../support/api';
import { openApplication, tell } from '../support/applications';
import { until, type TestWorker } from '../support/delivery';
import { miscounted } from '../support/invariants';
import { addMerchant } from '../support/merchants';
import { addEndpoint, newKeyRingText } from '../support/notifications';
import { startPackagedPostgres, type PackagedPostgres } from '../support/packaged-postgres';
import { startNode } from '../support/project-process';
import { testTemporal } from '../support/temporal';
import { startWebhookReceiver, verifySignatures, type WebhookReceiver } from '../support/webhook-receiver';
import { createScene, partitionsOf, type Sent } from './backup-scene';
import { asRole } from '../support/roles';
import { fileNeeds } from '../support/needs';

fileNeeds('Postgres');

/** The database is dumped under load, keeps working, and is lost; docs/operations/backup.md has the same commands. */
const temporal = testTemporal();
const keyRing = newKeyRingText();
const MERCHANT = 'M765432';
/** As docs/operations/backup.md has them. */
const DUMP = ['--format=custom'];
const RESTORE = ['--exit-on-error', '--single-transaction', '--no-owner', '--no-acl'];
let server: PackagedPostgres;
let receiver: WebhookReceiver;
let scene: ReturnType<typeof createScene>;
let api: TestApi;
let worker: TestWorker | undefined;
let secret: string;
let application: string;
let quoted: { readonly service_quote_id: string; readonly products: readonly unknown[] };
let partitions: readonly string[];
const during: string[] = [];
const keys = { revokedLater: '', issuedLater: '' };
/** By what they were when the dump was taken. */
const sent: Record<string, Sent> = {};
const is = (name: string): Sent => sent[name] ?? { notificationId: name, eventId: name };
let lostQuote: string;

const quote = async (key?: string) => api.quote({ merchant_id: MERCHANT }, key === undefined ? {} : { key });
const quoteId = async () => String((await quote()).body.data.service_quote_id);
const stored = async (id: string) =>
  (await api.database.sql`select response from quotes where quote_id = ${id}`).length === 1;

beforeAll(async () => {
  server = await startPackagedPostgres();
  receiver = await startWebhookReceiver();
  scene = createScene({ databaseUrl: server.url, temporal, receiver, keyRing });
  await migrateDatabase(server.url);
  api = await startTestApi({ databaseUrl: server.url });
  const { database } = api;
  await addMerchant(database, MERCHANT);
  ({ secret } = await addEndpoint(database, { partnerId: PARTNER_ID, url: receiver.url, keyRing }));
  const issued = { partnerId: PARTNER_ID, environment: 'sandbox', expiresInSeconds: null } as const;
  const leaked = await database.db.transaction((tx) => issueKey(tx, issued));
  keys.revokedLater = leaked.key;
  quoted = (await quote()).body.data;

  worker = await scene.startWorker();
  ({ applicationId: application } = await openApplication(database, { partnerId: PARTNER_ID }));
  sent['delivered'] = await scene.store(api);
  sent['waiting'] = await scene.store(api, { refuse: true });
  sent['waitingThenDelivered'] = await scene.store(api, { refuse: true });
  await scene.settled(api, is('delivered'), { state: 'delivered', attempts: 1 });
  await scene.settled(api, is('waiting'), { state: 'started', attempts: 1 });
  await scene.settled(api, is('waitingThenDelivered'), { state: 'started', attempts: 1 });
  await until(() => receiver.received.length === 4, 'the first event of the application', 20_000);
  await worker.close();
  sent['pending'] = await scene.store(api);

  partitions = (await partitionsOf(database)).filter((one) => !one.startsWith('quotes'));
  const dump = join(server.folder, 'quotes.dump');
  const dumping = server.run('pg_dump', ...DUMP, `--file=${dump}`, server.url);
  let over = false;
  const done = dumping.finally(() => (over = true));
  while (!over) during.push(await quoteId());
  await done;

  worker = await scene.startWorker();
  await scene.settled(api, is('pending'), { state: 'delivered', attempts: 1 });
  await scene.accept(is('waitingThenDelivered'));
  await scene.settled(api, is('waitingThenDelivered'), { state: 'delivered', attempts: 2 });
  sent['lost'] = await scene.store(api);
  sent['lostWaiting'] = await scene.store(api, { refuse: true });
  await scene.settled(api, is('lost'), { state: 'delivered', attempts: 1 });
  await scene.settled(api, is('lostWaiting'), { state: 'started', attempts: 1 });
  await tell(database, application, 'submitted', { lenderEventId: 'le-7' });
  await until(() => eventsOfApplication().length === 2, 'its second event', 20_000);
  await database.db.transaction((tx) => revokeKey(tx, leaked.summary.keyId));
  keys.issuedLater = (await database.db.transaction((tx) => issueKey(tx, issued))).key;
  lostQuote = await quoteId();

  await server.lose();
  expect((await quote()).status).toBe(500);
  await Promise.all([worker.close(), api.close()]);
  worker = undefined;
  await server.create();
  await server.run('pg_restore', ...RESTORE, `--dbname=${server.url}`, dump);
  await migrateDatabase(server.url);
  api = await startTestApi({ databaseUrl: server.url, keys: api.keys });
}, 300_000);
afterAll(async () => {
  await worker?.close();
  await api?.close();
  await receiver?.close();
  await server?.close();
});

/** As received: [sequence, status, event id]. */
function eventsOfApplication(): [number, string, string][] {
  return receiver.received.flatMap(({ body }) => {
    const event = JSON.parse(body) as {
      event_id: string;
      sequence: number;
      data: { credit_application_id: string | null; status: string };
    };
    if (event.data.credit_application_id !== application) return [];
    return [[event.sequence, event.data.status, event.event_id]];
  });
}

test('quotes are answered from the restored database, with the same keys and merchants', async () => {
  const answer = await quote();
  expect(answer.status).toBe(200);
  expect(quoted.products).toHaveLength(1);
  expect(answer.body.data.products).toHaveLength(1);
  expect(answer.body.data.products[0]).toMatchObject({ credit_product: 'Product 0' });
  expect((await quote(api.keys.live)).status).toBe(200);
  expect(await stored(quoted.service_quote_id)).toBe(true);
});

test('every month of every table is there, with its rows', async () => {
  const now = await partitionsOf(api.database);
  expect(now.filter((one) => !one.startsWith('quotes'))).toEqual(partitions);
  expect(now.filter((one) => one.startsWith('quotes_2'))).toHaveLength(13);
  expect(now.filter((one) => /_default DEFAULT: [^0]/.test(one))).toEqual([]);
});

test('quotes answered while the dump was taken are in it from the first to some moment, and nothing in between is missing', async () => {
  expect(during.length).toBeGreaterThan(0);
  const there = await Promise.all(during.map(stored));
  expect(there).toEqual(there.toSorted((a, b) => Number(b) - Number(a)));
});

test('what came after the dump is lost: quotes, keys; and a key revoked since is alive again', async () => {
  expect(await stored(lostQuote)).toBe(false);
  expect((await quote(keys.issuedLater)).status).toBe(401);
  expect((await quote(keys.revokedLater)).status).toBe(200);
});

test('secrets open with their key ring, which is not in the dump, and with no other', async () => {
  const check = async (WEBHOOK_KEYS: string) => {
    const ops = startNode(['--import', 'tsx', 'bin/ops.ts', 'secrets', 'check'], {
      cwd: resolve(__dirname, '../..'),
      environment: { DATABASE_URL: asRole(server.url, 'ops'), WEBHOOK_KEYS },
    });
    return [await ops.ended, ops.output()];
  };
  const [key = ''] = keyRing.split(':').slice(1);
  const dump = await server.run('pg_restore', '--file=-', join(server.folder, 'quotes.dump'));
  expect([dump.includes(secret), dump.includes(key)]).toEqual([false, false]);
  expect(await check(keyRing)).toEqual([
    0,
    expect.stringContaining('All 2 secrets and private keys open: 2 under test.'),
  ]);
  expect(await check(newKeyRingText())).toEqual([
    1,
    expect.stringContaining('2 of 2 secrets and private keys cannot be opened'),
  ]);
});

test('rows and workflows are brought together: sent once more at most, counted once', async () => {
  worker = await scene.startWorker();
  await scene.settled(api, is('pending'), { state: 'delivered', attempts: 1 });
  // Its second, successful attempt was forgotten; the third keeps to what was planned for the second, unless somebody asks sooner.
  await scene.waiting(api, is('waitingThenDelivered'), 2);
  await scene.accept(is('waitingThenDelivered'), 2);
  await scene.settled(api, is('waitingThenDelivered'), { state: 'delivered', attempts: 2 });
  await scene.accept(is('waiting'));
  await scene.settled(api, is('waiting'), { state: 'delivered', attempts: 2 });
  const seen = ['delivered', 'pending', 'waitingThenDelivered', 'waiting'].map(
    (name) => scene.requests(is(name)).length,
  );
  expect(seen).toEqual([1, 2, 3, 2]);
  expect(await miscounted(api.database)).toEqual([]);
  for (const request of receiver.received) verifySignatures(request, secret);
});

test('a workflow whose notification is lost sends nothing more and ends', async () => {
  await scene.accept(is('lostWaiting'));
  expect(await scene.handleOf(is('lostWaiting')).result()).toMatchObject({ status: 'superseded' });
  expect(scene.requests(is('lostWaiting'))).toHaveLength(1);
});

test('the handbook names the same commands', async () => {
  const page = await readFile(join(__dirname, '../../docs/operations/backup.md'), 'utf8');
  expect(page).toContain(`pg_dump ${DUMP.join(' ')} --file=`);
  expect(page).toContain(`pg_restore ${RESTORE.join(' ')} --dbname=`);
});

test('a lender that repeats what it said since the dump restores the application, with the same sequence', async () => {
  await tell(api.database, application, 'submitted', { lenderEventId: 'le-7' });
  await until(() => eventsOfApplication().length === 3, 'the event once more', 20_000);
  const [, before, again] = eventsOfApplication();
  expect(again?.slice(0, 2)).toEqual(before?.slice(0, 2));
  expect(again?.[2]).not.toBe(before?.[2]);
});
