import { openCrashScene, type CrashScene } from '../support/crash-scene';
import { until } from '../../testbed/until';
import { PATHS } from '../support/fast-path';
import { metricIn } from '../../testbed/http-call';
import { startOwnPostgres, type OwnPostgres } from '../../testbed/own-postgres';
import { testTemporal } from '../support/temporal';
import type { ApiProcess } from '../support/api-process';
import type { WorkerProcess } from '../support/worker-process';
import { migrateWithLogins } from '../../testbed/roles';

const temporal = testTemporal();
let postgres: OwnPostgres;
let scene: CrashScene;
let api: ApiProcess;
let worker: WorkerProcess;

beforeAll(async () => {
  postgres = await startOwnPostgres();
  await migrateWithLogins(postgres.url);
  scene = await openCrashScene({ databaseUrl: postgres.url, temporal });
  [api, worker] = await Promise.all([scene.api(), scene.worker()]);
  await worker.ready();
}, 300_000);
afterAll(async () => {
  await scene?.close();
  await postgres?.close();
});
beforeEach(() => scene.reset());

test('Postgres killed in the transaction of a request: 500 in the contract form, and a retry succeeds', async () => {
  await scene.lock('month');
  const answer = scene.post(api);
  await until(() => scene.waits('pfqs api partners'), 'the insert waits for the lock');
  await postgres.stopImmediately();
  expect(await answer).toMatchObject({
    status: 500,
    body: { success: false, error: { code: 'INTERNAL_SERVER_ERROR' } },
  });
  await postgres.start();
  expect(await scene.rows()).toEqual([]);

  let retried = await scene.post(api);
  await until(async () => {
    if (retried !== 'reset' && retried.status < 500) return true;
    retried = await scene.post(api);
    return false;
  }, 'the API has found Postgres again');
  const rows = await scene.ended();
  // A retry that was answered 500 may have come after its commit.
  expect(rows.length).toBeGreaterThan(0);
  expect(rows.every(({ state }) => state === 'delivered')).toBe(true);
  await scene.expectInvariants({ kills: 0 });
}, 180_000);

test.each(PATHS)(
  'Postgres killed between the partner and the record: recorded once it is back, sent once, counted once (%s)',
  async (path) => {
    if (path === 'fast') {
      await worker.end('SIGTERM');
      worker = await scene.worker({}, path);
    }
    scene.receiver.behave(() => (response) => {
      void postgres.stopImmediately().then(() => response.writeHead(200).end());
    });
    const answer = scene.post(api);
    await until(() => scene.receiver.received.length === 1, 'the event arrives');
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    await postgres.start();
    await scene.expectDelivered(['delivered'], { path });
    expect(scene.receiver.received).toHaveLength(1);
    // Its reader was away too: it says delivered when word came within its ten seconds, and queued otherwise.
    const answered = await answer;
    if (answered === 'reset') throw new Error('the API gave no answer');
    expect([200, 202]).toContain(answered.status);
  },
  180_000,
);

test('without Postgres a worker is scraped all the same, without what is read there, and counts enough errors for DispatchFails', async () => {
  const read = ['pfqs_notifications_pending', 'pfqs_notifications_undelivered', 'pfqs_notifications_held'];
  const scrape = async () => {
    const page = await worker.metrics();
    expect(page).toMatch(/^process_resident_memory_bytes \d/m);
    const figures = read.filter((name) => new RegExp(`^${name}[ {]`, 'm').test(page));
    return { figures, errors: metricIn(page, 'pfqs_dispatch_error_total') };
  };
  expect(await scrape()).toMatchObject({ figures: read });
  const away = [
    { gone: () => postgres.freeze(), back: () => postgres.unfreeze() },
    { gone: () => postgres.stopImmediately(), back: () => postgres.start() },
  ];
  for (const { gone, back } of away) {
    await gone();
    const first = await scrape();
    expect(first.figures).toEqual([]);
    let errors = first.errors;
    const endsMs = performance.now() + 60_000;
    // More than 5 in 5 minutes: DispatchFails.
    while (errors < first.errors + 2 && performance.now() < endsMs) {
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      const { figures, errors: now } = await scrape();
      expect(figures).toEqual([]);
      errors = now;
    }
    expect(errors).toBeGreaterThanOrEqual(first.errors + 2);
    await back();
    await until(async () => (await scrape()).figures.length === read.length, 'the figures are back');
  }
}, 300_000);
