import type { Client } from '@temporalio/client';
import { Agent, request } from 'undici';
import type { Database } from '../../db/postgres/connect';
import { issueKey } from '../../db/keys';
import { createPartner } from '../../db/catalogue/partners';
import { goodQuote } from './api';
import { startApiProcess, type ApiProcess } from './api-process';
import { expectDocumented } from './contract';
import { openDatabaseAt, openTestDatabase } from './database';
import { until } from './delivery';
import { localActivitiesOf, warmUp, type Path } from './fast-path';
import { expectInvariants } from './invariants';
import { addEndpoint, newKeyRingText } from './notifications';
import { randomTaskQueue } from './temporal';
import { localTargets, startWebhookReceiver, type WebhookReceiver } from './webhook-receiver';
import { startWorkerProcess, type WorkerProcess } from './worker-process';

export interface TestAnswer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every form
  readonly body: any;
}

export interface NotificationRow {
  readonly id: string;
  readonly state: string;
  readonly reason: string | null;
  readonly generation: number;
  /** What the attempts came to, or `under way`, by their numbers. */
  readonly attempts: readonly string[];
}

/** A partner with an endpoint, on a given Postgres and Temporal; API and worker processes to kill. */
export interface CrashScene {
  readonly database: Database;
  readonly databaseUrl: string;
  readonly receiver: WebhookReceiver;
  readonly taskQueue: string;
  readonly partnerId: string;
  /** Another partner, with a key and an endpoint of its own at the same receiver. */
  addPartner(partnerId: string): Promise<void>;
  api(environment?: Readonly<Record<string, string>>): Promise<ApiProcess>;
  /** Started, not awaited; for the fast path warmed up, so that each partner's next delivery takes it. */
  worker(environment?: Readonly<Record<string, string>>, path?: Path): Promise<WorkerProcess>;
  /** That the first attempts of these notifications, or of all, began on this path. */
  expectPath(path: Path, notificationIds?: readonly string[]): Promise<void>;
  /** `POST /v1/notifications/test`, held against the contract; `reset` when no answer comes. */
  post(api: ApiProcess): Promise<TestAnswer | 'reset'>;
  /** `POST /v1/finance-quote`. @returns its status. */
  quote(api: ApiProcess): Promise<number>;
  rows(): Promise<NotificationRow[]>;
  /** Waits until every row has ended. @returns them */
  ended(timeoutMs?: number): Promise<NotificationRow[]>;
  counts(): Promise<{ delivered: number; failed: number; reserved: number }[]>;
  /** Kept from going on until it is released: whoever wants a place in the month, or the row of a notification. */
  lock(what: 'month' | 'notification'): Promise<() => Promise<void>>;
  /** Whether a process of this name waits for such a lock. */
  waits(applicationName: string): Promise<boolean>;
  /** Every row, request and output so far. */
  expectInvariants(options: { readonly kills: number; readonly client?: Client }): Promise<void>;
  /** Kills what still runs. */
  stopProcesses(): Promise<void>;
  /** Forgets what an earlier test left in the database and at the receiver. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

export interface CrashSceneOptions {
  /** Without it the scene has a database of its own. */
  readonly databaseUrl?: string;
  readonly temporal: { readonly address: string; readonly namespace: string };
  readonly client: () => Client;
  /** Way to the receiver, where that is not its own port. */
  readonly receiverPort?: (receiver: WebhookReceiver) => Promise<number>;
  readonly environment?: Readonly<Record<string, string>>;
}

export async function openCrashScene(options: CrashSceneOptions): Promise<CrashScene> {
  const { temporal } = options;
  const database =
    options.databaseUrl === undefined
      ? await openTestDatabase({ poolSize: 6, statementTimeoutMs: 0 })
      : openDatabaseAt(options.databaseUrl, { poolSize: 6, statementTimeoutMs: 0 });
  const databaseUrl = database.url;
  const { db, sql } = database;
  const receiver = await startWebhookReceiver();
  const receiverPort = (await options.receiverPort?.(receiver)) ?? receiver.port;
  const keys = newKeyRingText();
  const taskQueue = randomTaskQueue('crash');
  const partnerId = 'P100001';
  const secrets = new Map<string, string>();
  const apiKeys = new Map<string, string>();
  const processes: (ApiProcess | WorkerProcess)[] = [];
  const agents: Agent[] = [];

  async function addPartner(id: string): Promise<void> {
    await createPartner(db, { partnerId: id, name: 'Example' });
    const wanted = { partnerId: id, environment: 'sandbox', expiresInSeconds: null } as const;
    apiKeys.set(id, (await db.transaction((tx) => issueKey(tx, wanted))).key);
    const url = receiver.url.replace(`:${receiver.port}`, `:${receiverPort}`);
    secrets.set(id, (await addEndpoint(database, { partnerId: id, url, keyRing: keys })).secret);
  }
  await addPartner(partnerId);

  const rows = async () => [
    ...(await sql<NotificationRow[]>`
      select n.notification_id as id, state, end_reason as reason, n.generation,
        coalesce(array_agg(coalesce(outcome, 'under way') order by attempt_number)
          filter (where attempt_number is not null), '{}') as attempts
      from notifications_now n left join delivery_attempts a on a.notification_id = n.notification_id
      group by n.notification_id, n.state, n.end_reason, n.generation order by 1`),
  ];
  async function send(api: ApiProcess, path: string, body: string | null) {
    const agent = new Agent({ connect: { ca: api.ca } });
    agents.push(agent);
    const answer = await request(`https://127.0.0.1:${api.port}${path}`, {
      method: 'POST',
      dispatcher: agent,
      headers: {
        authorization: `Bearer ${apiKeys.get(partnerId)}`,
        ...(body !== null && { 'content-type': 'application/json' }),
      },
      body,
    });
    return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
  }
  async function reset(): Promise<void> {
    await sql`truncate notifications, deliveries, delivery_attempts, monthly_counts`;
    receiver.received.length = 0;
    receiver.behave(() => 200);
  }
  const isOpen = ({ state }: NotificationRow) => state === 'queued' || state === 'started';
  return {
    database,
    databaseUrl,
    receiver,
    taskQueue,
    partnerId,
    addPartner,
    async api(environment = {}) {
      const api = await startApiProcess({
        databaseUrl,
        environment: { LOG_LEVEL: 'debug', DATABASE_TIMEOUT_MS: '20000', ...environment },
      });
      processes.push(api);
      return api;
    },
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
          ...options.environment,
          ...environment,
        },
      });
      processes.push(worker);
      if (path === 'fast') {
        await worker.ready();
        for (const id of apiKeys.keys()) await warmUp({ database, client: options.client() }, id);
        await reset();
      }
      return worker;
    },
    async expectPath(path, notificationIds) {
      const ids = notificationIds ?? (await rows()).map(({ id }) => id);
      const fast = async (id: string) => (await localActivitiesOf(options.client(), id))[0] === 'sendAtOnce';
      for (const id of ids) {
        // The markers come with the end of the workflow task, which is after the record.
        if (path === 'fast') await until(() => fast(id), `${id} took the fast path`);
        else expect(await fast(id)).toBe(false);
      }
    },
    async post(api) {
      const call = { method: 'POST', path: '/v1/notifications/test' } as const;
      const answer = await send(api, call.path, null).catch(() => null);
      if (answer === null) return 'reset';
      expectDocumented(call, answer);
      return { status: answer.status, body: JSON.parse(answer.text) };
    },
    quote: async (api) => (await send(api, '/v1/finance-quote', JSON.stringify(goodQuote))).status,
    rows,
    async ended(timeoutMs = 60_000) {
      await until(async () => !(await rows()).some(isOpen), 'the end of every notification', timeoutMs).catch(
        async (error: Error) => {
          const outputs = processes.map((one) => one.output().slice(-3_000));
          throw new Error(`${error.message}\n${JSON.stringify(await rows())}\n${outputs.join('\n----\n')}`);
        },
      );
      return rows();
    },
    counts: async () => [
      ...(await sql<{ delivered: number; failed: number; reserved: number }[]>`
        select delivered, failed, reserved from monthly_counts order by partner_id`),
    ],
    async lock(what) {
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
    async waits(applicationName) {
      const found = await sql`
        select 1 from pg_stat_activity where datname = current_database()
          and application_name = ${applicationName} and wait_event_type = 'Lock'`;
      return found.length > 0;
    },
    stopProcesses: async () => void (await Promise.all(processes.map((one) => one.end('SIGKILL')))),
    expectInvariants: ({ kills, client = options.client() }) =>
      expectInvariants({
        database,
        receiver,
        secrets,
        hidden: [keys, ...apiKeys.values()],
        kills,
        outputs: processes.map((one) => one.output()),
        client,
      }),
    reset,
    async close() {
      await Promise.all(processes.map((one) => one.close()));
      await Promise.all(agents.map((agent) => agent.destroy()));
      await receiver.close();
      await database.close();
    },
  };
}
