import { Agent, request } from 'undici';
import { connectDatabase, type Database } from '../../db/postgres/connect';
import { issueKey } from '../../db/keys/api-key-changes';
import { createPartner } from '../../db/catalogue/partners';
import { issueServiceKey } from '../../db/keys/service-keys';
import { startApiProcess, type ApiProcess } from '../support/api-process';
import { addEndpoint, newKeyRingText } from '../support/notifications';
import type { KillableTemporal } from '../support/killable-temporal';
import { ownTemporal } from '../support/own-temporal';
import { startOwnPostgres, type OwnPostgres } from '../support/postgres-server';
import { randomTaskQueue } from '../support/temporal';
import { startWebhookReceiver, verifySignatures, type WebhookReceiver } from '../support/webhook-receiver';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process';
import { migrateWithLogins } from '../support/roles';

export interface StormOptions {
  readonly partners: number;
  readonly apis: number;
  readonly workers: number;
  /** Default: the CLI's dev server. */
  readonly openTemporal?: () => Promise<KillableTemporal>;
}

export interface StormPartner {
  readonly partnerId: string;
  readonly apiKey: string;
  readonly secret: string;
}

/** An answer of the API, looked at for the envelope (I7). */
export interface StormAnswer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every form
  readonly body: any;
}

/** A whole service of processes that may be killed: Postgres with fsync, Temporal, APIs, workers. */
export interface StormScene {
  readonly postgres: OwnPostgres;
  readonly temporal: KillableTemporal;
  readonly database: Database;
  readonly receiver: WebhookReceiver;
  readonly partners: readonly StormPartner[];
  /** One more, which asks for test notifications. */
  readonly tester: StormPartner;
  /** Null in the place of one that is being started again. */
  readonly apis: (ApiProcess | null)[];
  readonly workers: WorkerProcess[];
  /** Everything that stands in no output and no history. */
  readonly hidden: readonly string[];
  /** What each request at the receiver was answered, by its number; and what was wrong with its signature when it came. */
  readonly answered: number[];
  readonly signatureFaults: string[];
  /** Answers without a request id or the envelope. */
  readonly improperAnswers: string[];
  readonly answers: { count: number };
  /** @returns null when no answer came. */
  ask(wanted: {
    readonly internal: boolean;
    readonly path: string;
    readonly key: string | null;
    readonly body: unknown;
  }): Promise<StormAnswer | null>;
  readonly serviceKey: string;
  startApi(at: number): Promise<void>;
  startWorker(at: number): Promise<void>;
  outputs(): string[];
  close(): Promise<void>;
}

/** Short steps, and enough of them to outlast everything that is killed. */
const LADDER = '0,1,1,2,2,3,3,5,5,5,5,5,5,5,5';

export async function openStorm(options: StormOptions): Promise<StormScene> {
  const postgres = await startOwnPostgres({ shared_buffers: '128MB', max_connections: 150 });
  await migrateWithLogins(postgres.url);
  const temporal: KillableTemporal = await (options.openTemporal ?? ownTemporal)();
  await temporal.start();
  const database = connectDatabase({
    url: postgres.url,
    poolSize: 4,
    applicationName: 'test',
    statementTimeoutMs: 0,
  });
  const { db } = database;
  const keyRing = newKeyRingText();
  const answered: number[] = [];
  const signatureFaults: string[] = [];
  const secretOf = new Map<string, string>();
  // One in forty is refused at first, one in forty takes its time.
  const receiver = await startWebhookReceiver((nth, received) => {
    const fault = faultOf(received, [...secretOf.values()]);
    if (fault !== null) signatureFaults.push(fault);
    const status = nth % 40 === 7 ? 503 : 200;
    answered[nth] = status;
    if (nth % 40 !== 23) return status;
    return (response) => void setTimeout(() => response.writeHead(status).end(), 300);
  });
  async function newPartner(number: number): Promise<StormPartner> {
    const partnerId = `P${200_001 + number}`;
    await createPartner(db, { partnerId, name: 'Storm' });
    const wanted = { partnerId, environment: 'sandbox', expiresInSeconds: null } as const;
    const { key } = await db.transaction((tx) => issueKey(tx, wanted));
    const { secret } = await addEndpoint(database, { partnerId, url: receiver.url, keyRing });
    secretOf.set(partnerId, secret);
    return { partnerId, apiKey: key, secret };
  }
  const partners: StormPartner[] = [];
  while (partners.length < options.partners) partners.push(await newPartner(partners.length));
  const tester = await newPartner(partners.length);
  const service = await issueServiceKey(db, {
    name: 'Storm',
    lender: 'lender_a',
    environment: 'sandbox',
    expiresInSeconds: null,
  });
  const apis: (ApiProcess | null)[] = [];
  const workers: WorkerProcess[] = [];
  const ended: { output(): string; close(): Promise<void> }[] = [];
  const agents = new Map<string, Agent>();
  const improperAnswers: string[] = [];
  const answers = { count: 0 };
  const taskQueue = randomTaskQueue('storm');
  let turn = 0;

  const scene: StormScene = {
    postgres,
    temporal,
    database,
    receiver,
    partners,
    tester,
    apis,
    workers,
    hidden: [
      keyRing,
      service.key,
      ...[...partners, tester].flatMap(({ apiKey, secret }) => [apiKey, secret]),
    ],
    answered,
    signatureFaults,
    improperAnswers,
    answers,
    serviceKey: service.key,
    async ask({ internal, path, key, body }) {
      turn += 1;
      const there = apis.filter((one) => one !== null);
      const api = there[turn % Math.max(there.length, 1)];
      if (api === undefined) return null;
      const agent = agents.get(api.ca) ?? new Agent({ connect: { ca: api.ca }, connections: 16 });
      agents.set(api.ca, agent);
      const base = internal ? `http://127.0.0.1:${api.internalPort}` : `https://127.0.0.1:${api.port}`;
      try {
        const answer = await request(`${base}${path}`, {
          method: 'POST',
          ...(!internal && { dispatcher: agent }),
          headers: {
            'content-type': 'application/json',
            ...(key !== null && { authorization: `Bearer ${key}` }),
          },
          body: body === null ? null : JSON.stringify(body),
          headersTimeout: 20_000,
          bodyTimeout: 20_000,
        });
        const text = await answer.body.text();
        const document = JSON.parse(text) as { success?: unknown };
        answers.count += 1;
        if (answer.headers['x-request-id'] === undefined || typeof document.success !== 'boolean') {
          improperAnswers.push(`${path} ${answer.statusCode}: ${text}`);
        }
        return { status: answer.statusCode, body: document };
      } catch {
        return null;
      }
    },
    async startApi(at) {
      const before = apis[at];
      apis[at] = null;
      if (before) ended.push(before);
      apis[at] = await startApiProcess({ databaseUrl: postgres.url, environment: { LOG_LEVEL: 'debug' } });
    },
    async startWorker(at) {
      const before = workers[at];
      if (before) ended.push(before);
      workers[at] = await startWorkerProcess({
        databaseUrl: postgres.url,
        temporal,
        taskQueue,
        receiver,
        keys: keyRing,
        environment: {
          ...temporal.environment,
          DELIVERY_LADDER_SECONDS: LADDER,
          RECONCILE_AFTER_MS: '20000',
        },
      });
    },
    outputs: () => [...ended, ...apis, ...workers].flatMap((one) => (one === null ? [] : [one.output()])),
    async close() {
      for (const one of [...ended, ...apis, ...workers]) await one?.close();
      for (const agent of agents.values()) await agent.destroy();
      await receiver.close();
      await temporal.close();
      await database.close();
      await postgres.close();
    },
  };
  await Promise.all([
    ...Array.from({ length: options.apis }, (_, at) => scene.startApi(at)),
    ...Array.from({ length: options.workers }, (_, at) => scene.startWorker(at)),
  ]);
  await Promise.all(workers.map((worker) => worker.ready(120_000)));
  return scene;
}

/** All endpoints lead to one receiver, and each signs with a secret of its own: one of them has to fit. */
function faultOf(
  received: Parameters<typeof verifySignatures>[0],
  secrets: readonly string[],
): string | null {
  let fault = 'no secret';
  for (const secret of secrets) {
    try {
      verifySignatures(received, secret);
      return null;
    } catch (error) {
      fault = (error as Error).message;
    }
  }
  return `${String(received.headers['webhook-id'])}: ${fault}`;
}
