import { issueKey } from '../../db/keys';
import type { ApiProcess } from '../support/api-process';
import { openCrashScene } from '../support/crash-scene';
import { setServiceClock, startServiceClock } from '../../testbed/notifications';
import type { Answer } from '../../testbed/http-call';
import type { TestTemporal } from '../support/temporal';
import type { WorkerProcess } from '../support/worker-process';

export type Called = Answer & {
  readonly code: string | null;
  /** `Retry-After` in seconds, or null. */
  readonly retryAfter: number | null;
};
export type Scene = Awaited<ReturnType<typeof openScene>>;

/**
 * One partner with a sandbox endpoint and four sandbox keys, two API processes, and a worker that can be away.
 * @param timeZones of the two API processes
 */
export async function openScene(temporal: TestTemporal, timeZones = ['UTC', 'UTC']) {
  const scene = await openCrashScene({ temporal });
  const { database, partnerId, receiver } = scene;
  const { db, sql } = database;
  const newKey = async (environment: 'sandbox' | 'live') => {
    const wanted = { partnerId, environment, expiresInSeconds: null };
    return (await db.transaction((tx) => issueKey(tx, wanted))).key;
  };
  const sandbox: string[] = [];
  for (let nth = 0; nth < 4; nth += 1) sandbox.push(await newKey('sandbox'));
  const liveKey = await newKey('live');
  const apis = await Promise.all(timeZones.map((TZ) => scene.api({ LOG_LEVEL: 'warn', TZ })));
  let worker: WorkerProcess | undefined;
  const taken = new Set<string>();

  async function call(nth: number, key: string): Promise<Called> {
    const api = apis[nth % apis.length] as ApiProcess;
    const answer = await api.call({ path: '/v1/notifications/test', key });
    const { 'retry-after': retryAfter } = answer.headers;
    const code = answer.body.error?.code ?? null;
    return { ...answer, code, retryAfter: retryAfter === undefined ? null : Number(retryAfter) };
  }
  /** The receiver answers by the event's id from now on; what it takes is counted. */
  const answer = (status: (eventId: string) => number | Promise<number>) =>
    receiver.behave((_nth, { eventId }) => (response) => {
      void (async () => {
        const code = await status(eventId);
        if (code < 300) taken.add(eventId);
        response.writeHead(code).end();
      })();
    });

  return {
    database,
    receiver,
    keys: sandbox as readonly string[],
    /** Of the environment that has no endpoint. */
    liveKey,
    /** Event ids that the receiver has answered with a 2xx. */
    taken,
    answer,
    /** That many test calls at once, by turns through the keys and the processes; `answered` hears of each answer at once. */
    fire: (
      calls: number,
      keys: readonly string[] = sandbox,
      answered: (called: Called) => void = () => undefined,
    ): Promise<Called[]> =>
      Promise.all(
        Array.from({ length: calls }, async (_, nth) => {
          const called = await call(nth, keys[nth % keys.length] ?? '');
          answered(called);
          return called;
        }),
      ),
    async startWorker() {
      worker = await scene.worker({ TEST_LADDER_SECONDS: '0,0', DISPATCH_SWEEP_MS: '250' });
      await worker.ready();
    },
    stopWorker: () => worker?.end('SIGTERM'),
    counts: async () => [
      ...(await sql<{ month: string; delivered: number; failed: number; reserved: number }[]>`
        select month::text, delivered, failed, reserved from monthly_counts
        where delivered + failed + reserved > 0 order by month, environment`),
    ],
    quiet: () => scene.ended(150_000),
    /**
     * Forgets notifications and counts, lets the receiver take everything, and lets the clock run on from a moment: null is the real one.
     */
    async begin(clock: string | null) {
      // It runs on: on a stopped one no lease ends, and nothing that was put off is ever due.
      if (clock === null) await setServiceClock(database, null);
      else await startServiceClock(database, clock);
      await scene.reset();
      taken.clear();
      answer(() => 200);
    },
    close: () => scene.close(),
  };
}
