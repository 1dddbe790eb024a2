import type { Client } from '@temporalio/client';
import type { Database } from '../../db/postgres/connect';
import { goodQuote } from '../../testbed/values';
import { startApiProcess, type ApiProcess } from './api-process';
import { keepChanges, keptChanges } from '../model/tools/kept';
import { accordingToModel } from '../model/tools/trace';
import { failures, type Finding } from '../storm/finding';
import { silent, storedRows } from '../storm/findings';
import { faultOf } from '../storm/parties';
import { attempted, signed } from '../storm/received';
import { counted, ended } from '../storm/stored';
import { despiteDeadlocks, expectExactlyOne, openDatabaseAt, openTestDatabase } from './database';
import { until } from '../../testbed/until';
import { localActivitiesOf, warmUp, type Path } from './fast-path';
import {
  addEndpoint,
  newKeyRingText,
  standings,
  storeTest,
  type Standing,
} from '../../testbed/notifications';
import { addPartner as addTenant } from './partner-events';
import { randomTaskQueue } from './temporal';
import { localTargets, startWebhookReceiver, type WebhookReceiver } from './webhook-receiver';
import { startWorkerProcess, type WorkerProcess } from './worker-process';

/** A partner with an endpoint, on a given Postgres and Temporal; API and worker processes to kill. */
export type CrashScene = Awaited<ReturnType<typeof openCrashScene>>;

export interface CrashSceneOptions {
  /** Without it the scene has a database of its own. */
  readonly databaseUrl?: string;
  readonly temporal: { readonly address: string; readonly namespace: string; readonly client: Client };
  /** Way to the receiver, where that is not its own port. */
  readonly receiverPort?: (receiver: WebhookReceiver) => Promise<number>;
  readonly environment?: Readonly<Record<string, string>>;
  /** Partners besides the first. */
  readonly others?: readonly string[];
}

export async function openCrashScene(options: CrashSceneOptions) {
  const { temporal } = options;
  const database =
    options.databaseUrl === undefined
      ? await openTestDatabase({ poolSize: 6, statementTimeoutMs: 0 })
      : openDatabaseAt(options.databaseUrl, { poolSize: 6, statementTimeoutMs: 0 });
  const databaseUrl = database.url;
  const { sql } = database;
  await keepChanges(sql);
  const receiver = await startWebhookReceiver();
  const receiverPort = (await options.receiverPort?.(receiver)) ?? receiver.port;
  const keys = newKeyRingText();
  const taskQueue = randomTaskQueue('crash');
  const partnerId = 'P100001';
  const secrets = new Map<string, string>();
  const apiKeys = new Map<string, string>();
  const processes: (ApiProcess | WorkerProcess)[] = [];

  async function addPartner(id: string): Promise<void> {
    apiKeys.set(id, (await addTenant(database, id)).test);
    const url = receiver.url.replace(`:${receiver.port}`, `:${receiverPort}`);
    secrets.set(id, (await addEndpoint(database, { partnerId: id, url, keyRing: keys })).secret);
  }
  for (const id of [partnerId, ...(options.others ?? [])]) await addPartner(id);

  const rows = () => standings(database);
  const key = () => apiKeys.get(partnerId) ?? '';
  async function reset(): Promise<void> {
    await despiteDeadlocks(() => sql`truncate notifications, deliveries, delivery_attempts, monthly_counts`);
    receiver.reset();
  }
  const isOpen = ({ state }: Standing) => state === 'queued' || state === 'started';
  /** Waits until every row has ended. @returns them */
  async function allEnded(timeoutMs = 60_000) {
    await until(async () => !(await rows()).some(isOpen), 'the end of every notification', timeoutMs).catch(
      async (error: Error) => {
        const outputs = processes.map((one) => one.output().slice(-3_000));
        throw new Error(`${error.message}\n${JSON.stringify(await rows())}\n${outputs.join('\n----\n')}`);
      },
    );
    return rows();
  }
  const counts = async () => [
    ...(await sql<{ delivered: number; failed: number; reserved: number }[]>`
      select delivered, failed, reserved from monthly_counts order by partner_id`),
  ];
  /** That the first attempts of all notifications began on this path. */
  async function expectPath(path: Path): Promise<void> {
    const fast = async (id: string) => (await localActivitiesOf(temporal.client, id))[0] === 'attemptAtOnce';
    for (const { id } of await rows()) {
      // The markers come with the end of the workflow task, which is after the record.
      if (path === 'fast') await until(() => fast(id), `${id} took the fast path`);
      else expect(await fast(id)).toBe(false);
    }
  }
  /**
   * Checks the invariants I1, I2, I3, I5, I8 and I9 over all that is in the database.
   * @param kills workers killed: each leaves at most one attempt of a notification `unknown`
   * @param client whose histories are read
   */
  async function expectInvariants({ kills, client = temporal.client }: { kills: number; client?: Client }) {
    const stored = await storedRows(database);
    const partners = new Map(stored.map((row) => [row.eventId, row.partnerId]));
    const secretOf = (eventId: string) => secrets.get(partners.get(eventId) ?? '') ?? '';
    const signatureFaults = receiver.received.flatMap((one) => faultOf(one, [secretOf(one.eventId)]) ?? []);
    const hidden = [keys, ...apiKeys.values(), ...secrets.values()];
    const outputs = () => processes.map((one) => one.output());
    const findings = [
      ended(stored),
      await withinQuota(database),
      await counted({ database }),
      signed({ receiver, signatureFaults }, stored),
      attempted({ receiver, answered: [] }, stored, {
        counts: { api: 0, worker: kills, temporal: 0, postgres: 0 },
      }),
      await silent({ receiver, hidden, temporal: { client }, outputs }, stored),
      accordingToModel(await keptChanges(sql)),
    ];
    expect(failures(findings)).toEqual([]);
    await expectExactlyOne(database);
  }
  return {
    database,
    databaseUrl,
    receiver,
    keys,
    taskQueue,
    partnerId,
    /** Another partner, with a key and an endpoint of its own at the same receiver. */
    addPartner,
    async api(environment = {}) {
      const api = await startApiProcess({
        databaseUrl,
        environment: { LOG_LEVEL: 'debug', DATABASE_TIMEOUT_MS: '20000', ...environment },
      });
      processes.push(api);
      return api;
    },
    /** Started, not awaited; for the fast path warmed up, so that each partner's next delivery takes it. */
    async worker(environment = {}, path = 'regular') {
      const worker = await startWorkerProcess({
        databaseUrl,
        temporal,
        taskQueue,
        receiver,
        keys,
        environment: {
          DATABASE_TIMEOUT_MS: '20000',
          WEBHOOK_LOCAL_TARGETS: localTargets(receiver.port, receiverPort),
          ...(path === 'regular' && { FAST_SLOTS: '0' }),
          ...options.environment,
          ...environment,
        },
      });
      processes.push(worker);
      if (path === 'fast') {
        await worker.ready();
        for (const id of apiKeys.keys()) await warmUp({ database, client: temporal.client }, id);
        await reset();
      }
      return worker;
    },
    expectPath,
    /** `POST /v1/notifications/test`, held against the contract; `reset` when no answer comes. */
    post: (api: ApiProcess) =>
      api.call({ path: '/v1/notifications/test', key: key() }).catch((error: { code?: string }) => {
        if (error.code === undefined) throw error;
        return 'reset' as const;
      }),
    /** Stores a test as the API does. */
    storeTest: (id = partnerId) => storeTest(database, { partnerId: id }),
    quote: async (api: ApiProcess) => (await api.call({ key: key(), body: goodQuote })).status,
    rows,
    ended: allEnded,
    counts,
    /** Kept from going on until it is released: whoever wants a place in the month, or the row of a notification. */
    async lock(what: 'month' | 'notification') {
      const own = await sql.reserve();
      await own`begin`;
      if (what === 'notification') await own`select 1 from deliveries for update`;
      else {
        await own`insert into monthly_counts (partner_id, environment, month, event_type)
          values (${partnerId}, 'sandbox', service_month(), 'credit_application.test') on conflict do nothing`;
        await own`commit`;
        await own`begin`;
        await own`select 1 from monthly_counts for update`;
      }
      return async () => {
        await own`commit`;
        own.release();
      };
    },
    /** Whether a process of this name waits for such a lock. */
    async waits(applicationName: string) {
      const found = await sql`
        select 1 from pg_stat_activity where datname = current_database()
          and application_name = ${applicationName} and wait_event_type = 'Lock'`;
      return found.length > 0;
    },
    stopProcesses: async () => void (await Promise.all(processes.map((one) => one.end('SIGKILL')))),
    expectInvariants,
    /**
     * Waits for the end of the one notification there is: it was delivered by its last attempt and is counted once, its first attempt
     * was made on this path, and every invariant holds.
     */
    async expectDelivered(
      attempts: readonly string[],
      { kills = 0, generation = 1, path }: { kills?: number; generation?: number; path?: Path } = {},
    ) {
      expect(await allEnded()).toEqual([
        expect.objectContaining({ state: 'delivered', generation, attempts }),
      ]);
      expect(await counts()).toEqual([{ delivered: 1, failed: 0, reserved: 0 }]);
      if (path !== undefined) await expectPath(path);
      await expectInvariants({ kills });
    },
    /** Forgets what an earlier test left in the database and at the receiver. */
    reset,
    async close() {
      await Promise.all(processes.map((one) => one.close()));
      await receiver.close();
      await database.close();
    },
  };
}

/** The scene of a file's tests. Each begins with an empty one, and its processes end with it. @param prepare what comes before it, with its options */
export function useCrashScene(prepare: () => CrashSceneOptions | Promise<CrashSceneOptions>): CrashScene {
  const scene = {} as CrashScene;
  beforeAll(async () => void Object.assign(scene, await openCrashScene(await prepare())), 1_200_000);
  afterAll(() => scene.close?.());
  beforeEach(() => scene.reset());
  afterEach(() => scene.stopProcesses());
  return scene;
}

async function withinQuota({ sql }: Database): Promise<Finding> {
  const months = await sql`select *, delivered > 100 or reserved <> 0 as over from monthly_counts`;
  return {
    invariant: 'I2  never more than a hundred, and no unit of the quota left over',
    looked: months.length,
    seen: `${months.length} months`,
    offenders: months.filter(({ over }) => over).map((month) => JSON.stringify(month)),
  };
}
