import { setEndpointState } from '../../../db/endpoints/endpoints';
import { pauseDeliveries, resumeDeliveries } from '../../../db/notifications/hold';
import { resendNotification } from '../../../db/notifications/resend';
import type { Database } from '../../../db/postgres/connect';
import { openCrashScene } from '../../support/crash-scene';
import { startTestWorker, type TestWorker } from '../../support/delivery';
import { testTemporal } from '../../support/temporal';
import { storeStatus } from '../../../testbed/notifications';
import { until } from '../../../testbed/until';
import { FAULTS, plant } from './planted';
import { keptChanges } from './kept';
import { check, type Verdict } from './trace';

const temporal = testTemporal();
const LIMIT_MS = 240_000;

const ENVIRONMENT = {
  DELIVERY_LADDER_SECONDS: '0,2,2,2',
  FAST_SLOTS: '0',
  DISPATCH_SWEEP_MS: '500',
  DATABASE_TIMEOUT_MS: '20000',
};

/**
 * Some seconds of a worker with all that it meets: an application whose first event fails at first, a worker
 * killed within an attempt, a test, a pause of the partner, an endpoint that goes and comes, a resend. Only the one that is killed has a
 * process of its own.
 * @param prepare changes the functions of the run's database
 * @returns what the model says of it: as soon as it refuses a step, else at the end
 */
async function shortRun(prepare: (sql: Database['sql']) => Promise<unknown>): Promise<Verdict> {
  const scene = await openCrashScene({ temporal, environment: ENVIRONMENT });
  const { database, databaseUrl, taskQueue, receiver, keys, partnerId } = scene;
  const { sql, db } = database;
  const of = { partnerId, environment: 'sandbox' } as const;
  let over = false;
  const judged = async () => check(await keptChanges(sql));
  /** Waits until there is such a row, or, with `gone`, none any more; or for a step that the model refuses. */
  const reached = async (rows: string, gone = false) => {
    const there = async () => {
      over ||= (await judged()).refused !== null;
      return over || ((await sql.unsafe(`select from ${rows}`)).length === 0) === gone;
    };
    await until(there, `${gone ? 'no ' : ''}${rows}`, 90_000);
  };
  let worker: TestWorker | undefined;
  const startWorker = async () => {
    worker = await startTestWorker({
      databaseUrl,
      temporal,
      taskQueue,
      receiver,
      keys,
      environment: ENVIRONMENT,
    });
  };
  const allEnded = () => reached('deliveries', true);
  const store = (sequence: number) =>
    db.transaction((tx) =>
      storeStatus({ db: tx }, { partnerId, applicationId: 'app_01K0000000000000000000000A', sequence }),
    );

  try {
    await prepare(sql);
    const failing = 2;
    receiver.behave((nth) => (nth < failing ? 500 : 200));
    await startWorker();
    await scene.storeTest();
    await store(1);
    await store(2);
    await reached("delivery_attempts where outcome = 'failed' offset 1");
    await db.transaction((tx) => pauseDeliveries(tx, of, 'test'));
    await reached("deliveries where generation > 1 and state = 'queued'");
    await db.transaction((tx) => resumeDeliveries(tx, of, 'test'));
    await allEnded();

    if (over) return await judged();
    // Killed within an attempt, which another worker closes.
    await worker?.close();
    worker = undefined;
    const victim = await scene.worker();
    receiver.behave(() => null);
    await scene.storeTest();
    await reached('delivery_attempts where finished_at is null');
    await victim.end('SIGKILL');
    receiver.behave(() => 200);
    await startWorker();
    await allEnded();

    const [endpoint] = await sql<{ id: string }[]>`select endpoint_id as id from webhook_endpoints`;
    const sets = (to: Parameters<typeof setEndpointState>[2]) =>
      db.transaction((tx) => setEndpointState(tx, endpoint?.id ?? '', to));
    await sets({ state: 'disabled', reason: 'operator' });
    const { notificationId } = await store(3);
    await reached("deliveries where state = 'held'");
    await sets({ state: 'active' });
    await allEnded();
    // After a refusal it may not have ended.
    await db.transaction((tx) => resendNotification(tx, notificationId)).catch(() => undefined);
    await allEnded();
    return await judged();
  } finally {
    await scene.stopProcesses();
    await worker?.close();
    // A scene that was broken on purpose does not end in order.
    await scene.close().catch(() => undefined);
  }
}

test(
  'the model accepts a short run with all that may happen in it',
  async () => {
    const { refused, deliveries } = await shortRun(async () => undefined);
    expect(refused).toBeNull();
    expect(deliveries).toBeGreaterThanOrEqual(5);
  },
  LIMIT_MS,
);

describe('with a planted fault', () => {
  test.each(FAULTS)(
    'the model refuses: $name',
    async (fault) => {
      const { refused } = await shortRun((sql) => plant(sql, fault));
      expect(refused).not.toBeNull();
    },
    LIMIT_MS,
  );
});
