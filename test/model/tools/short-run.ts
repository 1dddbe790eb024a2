import { setEndpointState } from '../../../db/endpoints/endpoints';
import { pauseDeliveries, resumeDeliveries } from '../../../db/notifications/hold';
import { resendNotification } from '../../../db/notifications/resend';
import type { Database } from '../../../db/postgres/connect';
import { openCrashScene, type CrashSceneOptions } from '../../support/crash-scene';
import { until } from '../../../testbed/until';
import { storeStatus } from '../../../testbed/notifications';
import { LADDERS } from './planted';
import { check, keptChanges, type Line, type Verdict } from './trace';

const SECONDS = { DELIVERY_LADDER_SECONDS: String(LADDERS.ladder.map((ms) => ms / 1_000)) };

/**
 * Some seconds of a worker with all that it meets: an application whose first event fails at first, a worker
 * killed within an attempt, a test, a pause of the partner, an endpoint that goes and comes, a resend.
 * @param prepare changes the functions of the run's database
 * @returns what the model says of it: as soon as it refuses a step, else at the end
 */
export async function shortRun(
  options: CrashSceneOptions,
  prepare: (sql: Database['sql']) => Promise<unknown>,
): Promise<Verdict & { readonly lines: readonly Line[] }> {
  const scene = await openCrashScene({ ...options, environment: { ...SECONDS, ...options.environment } });
  const { database, receiver, partnerId } = scene;
  const { sql, db } = database;
  const of = { partnerId, environment: 'sandbox' } as const;
  let refused: (Verdict & { readonly lines: readonly Line[] }) | null = null;
  const judged = async () => {
    const lines = await keptChanges(sql);
    return { ...check(lines, LADDERS), lines };
  };
  /** Waits for something, or for a step that the model refuses. */
  const reached = async (what: string, there: () => Promise<boolean>) => {
    if (refused !== null) return;
    await until(
      async () => {
        const verdict = await judged();
        if (verdict.refused !== null) refused = verdict;
        return refused !== null || (await there());
      },
      what,
      60_000,
    );
  };
  const count = async (where: string) => (await sql.unsafe(`select 1 from ${where}`)).length;
  const store = (sequence: number) =>
    db.transaction((tx) =>
      storeStatus({ db: tx }, { partnerId, applicationId: 'app_01K0000000000000000000000A', sequence }),
    );
  const allEnded = async () => (await count('deliveries')) === 0;
  const endpoint = async () =>
    (await sql<{ id: string }[]>`select endpoint_id as id from webhook_endpoints`)[0]?.id ?? '';

  try {
    await prepare(sql);
    const failing = 2;
    receiver.behave((nth) => (nth < failing ? 500 : 200));
    await scene.worker();
    await scene.storeTest();
    await store(1);
    await store(2);
    await reached(
      'a failed attempt',
      async () => (await count("delivery_attempts where outcome = 'failed'")) >= 2,
    );
    await db.transaction((tx) => pauseDeliveries(tx, of, 'test'));
    await reached(
      'parked',
      async () => (await count("deliveries where generation > 1 and state = 'queued'")) >= 1,
    );
    await db.transaction((tx) => resumeDeliveries(tx, of, 'test'));
    await reached('the end of all', allEnded);

    // Killed within an attempt, which another worker closes.
    const victim = await scene.worker();
    receiver.behave(() => null);
    await scene.storeTest();
    await reached(
      'an attempt under way',
      async () => (await count('delivery_attempts where finished_at is null')) === 1,
    );
    await scene.stopProcesses();
    await victim.ended;
    receiver.behave(() => 200);
    await scene.worker();
    await reached('the end of the other attempt', allEnded);

    const endpointId = await endpoint();
    await db.transaction((tx) => setEndpointState(tx, endpointId, { state: 'disabled', reason: 'operator' }));
    const { notificationId } = await store(3);
    await reached('held', async () => (await count("deliveries where state = 'held'")) === 1);
    await db.transaction((tx) => setEndpointState(tx, endpointId, { state: 'active' }));
    await reached('the end of the released one', allEnded);
    if (refused === null) await db.transaction((tx) => resendNotification(tx, notificationId));
    await reached('the end of the resent one', allEnded);
    return refused ?? (await judged());
  } finally {
    await scene.stopProcesses();
    await scene.close().catch((error: unknown) => {
      if (refused === null) throw error;
    });
  }
}
