import { Agent } from 'undici';
import { issueKey } from '../../db/keys';
import { createPartner } from '../../db/catalogue/partners';
import { startApiProcess, type ApiProcess } from '../support/api-process';
import { expectDocumented } from '../support/contract';
import { openTestDatabase } from '../support/database';
import { startTestWorker, until, type TestWorker } from '../support/delivery';
import { addEndpoint, newKeyRingText, setServiceClock, startServiceClock } from '../support/notifications';
import { callOver, type Answer } from '../support/http-call';
import { randomTaskQueue, type TestTemporal } from '../support/temporal';
import { startWebhookReceiver } from '../support/webhook-receiver';

const PARTNER_ID = 'P100001';
const TEST_PATH = '/v1/notifications/test';

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
  const database = await openTestDatabase({ statementTimeoutMs: 0 });
  const { db, sql } = database;
  const receiver = await startWebhookReceiver();
  const keyRing = newKeyRingText();
  await createPartner(db, { partnerId: PARTNER_ID, name: 'Example' });
  const newKey = async (environment: 'sandbox' | 'live') => {
    const wanted = { partnerId: PARTNER_ID, environment, expiresInSeconds: null };
    return (await db.transaction((tx) => issueKey(tx, wanted))).key;
  };
  const sandbox: string[] = [];
  for (let nth = 0; nth < 4; nth += 1) sandbox.push(await newKey('sandbox'));
  const liveKey = await newKey('live');
  await addEndpoint(database, { partnerId: PARTNER_ID, url: receiver.url, keyRing });
  const apis: ApiProcess[] = await Promise.all(
    timeZones.map((TZ) =>
      startApiProcess({
        databaseUrl: database.url, // Only a call that a starved test machine cannot serve would take that long.
        environment: { LOG_LEVEL: 'warn', DATABASE_TIMEOUT_MS: '20000', TZ },
      }),
    ),
  );
  const agents = apis.map(({ ca }) => new Agent({ connect: { ca } }));
  let worker: TestWorker | undefined;
  const taken = new Set<string>();

  async function call(nth: number, key: string): Promise<Called> {
    const at = nth % apis.length;
    const [origin, dispatcher] = [`https://127.0.0.1:${apis[at]?.port}`, agents[at] as Agent];
    const answer = await callOver({ origin, path: TEST_PATH, key, dispatcher, check: expectDocumented }, {});
    const { 'retry-after': retryAfter } = answer.headers;
    const code = answer.body.error?.code ?? null;
    return { ...answer, code, retryAfter: retryAfter === undefined ? null : Number(retryAfter) };
  }

  return {
    database,
    receiver,
    keys: sandbox as readonly string[],
    /** Of the environment that has no endpoint. */
    liveKey,
    /** Event ids that the receiver has answered with a 2xx. */
    taken,
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
      worker = await startTestWorker({
        databaseUrl: database.url,
        temporal,
        taskQueue: randomTaskQueue('limits'),
        receiver,
        keys: keyRing,
        environment: { TEST_LADDER_SECONDS: '0,0', DISPATCH_SWEEP_MS: '250', DATABASE_TIMEOUT_MS: '20000' },
      });
    },
    async stopWorker() {
      await worker?.close();
      worker = undefined;
    },
    counts: async () => [
      ...(await sql<{ month: string; delivered: number; failed: number; reserved: number }[]>`
        select month::text, delivered, failed, reserved from monthly_counts
        where delivered + failed + reserved > 0 order by month, environment`),
    ],
    async quiet() {
      const open = () => sql`select 1 from notifications_now where state in ('queued', 'started') limit 1`;
      await until(async () => (await open()).length === 0, 'the end of every notification', 150_000);
    },
    /** The receiver answers by the event's id from now on; what it takes is counted. */
    answer: (status: (eventId: string) => number | Promise<number>) =>
      receiver.behave((_nth, { headers }) => (response) => {
        const eventId = String(headers['webhook-id']);
        void (async () => {
          const code = await status(eventId);
          if (code < 300) taken.add(eventId);
          response.writeHead(code).end();
        })();
      }),
    /** Forgets notifications and counts, and lets the clock run on from a moment: null is the real one. */
    async begin(clock: string | null) {
      // It runs on: on a stopped one no lease ends, and nothing that was put off is ever due.
      if (clock === null) await setServiceClock(database, null);
      else await startServiceClock(database, clock);
      await sql`truncate notifications, deliveries, delivery_attempts, monthly_counts`;
      receiver.received.length = 0;
      taken.clear();
    },
    async close() {
      await worker?.close();
      await Promise.all(agents.map((agent) => agent.destroy()));
      await Promise.all(apis.map((api) => api.close()));
      await receiver.close();
      await database.close();
    },
  };
}
