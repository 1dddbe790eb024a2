import { Agent } from 'undici';
import type { Database } from '../../db/postgres/connect';
import { startApiProcess, type ApiProcess } from '../support/api-process';
import { keepChanges } from '../model/tools/kept';
import { openDatabaseAt } from '../support/database';
import { newKeyRingText } from '../../testbed/notifications';
import type { KillableTemporal } from '../../testbed/production-temporal';
import { ownTemporal } from '../../testbed/own-temporal';
import { startOwnPostgres, type OwnPostgres } from '../../testbed/own-postgres';
import { randomTaskQueue } from '../support/temporal';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process';
import { migrateWithLogins } from '../../testbed/roles';
import { openAsking, type Asked, type Asking, type StormAnswer } from './asking';
import { openParties, type Parties, type PartnersAnswer } from './parties';

export interface StormOptions {
  readonly partners: number;
  readonly apis: number;
  readonly workers: number;
  /** Default: the CLI's dev server. */
  readonly openTemporal?: () => Promise<KillableTemporal>;
  /** What the partners answer to some requests. */
  readonly answer?: PartnersAnswer;
  /** Whether partners have receivers that misbehave on the wire. */
  readonly misbehaving?: boolean;
  /** Further settings of the workers. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** What the load of a storm, and the invariants after it, need of a scene. */
export interface StormSight extends Parties, Omit<Asking, 'ask'> {
  readonly temporal: Pick<KillableTemporal, 'client'>;
  readonly database: Database;
  /** @returns null when no answer came. */
  ask(wanted: Asked): Promise<StormAnswer | null>;
  /** Of the service's processes. */
  outputs(): string[];
}

/** A whole service of processes that may be killed: Postgres with fsync, Temporal, APIs, workers. */
export interface StormScene extends StormSight {
  readonly postgres: OwnPostgres;
  readonly temporal: KillableTemporal;
  /** Null in the place of one that is being started again. */
  readonly apis: (ApiProcess | null)[];
  readonly workers: WorkerProcess[];
  startApi(at: number): Promise<void>;
  startWorker(at: number): Promise<void>;
  close(): Promise<void>;
}

/** Short steps, and enough of them to outlast everything that is killed. */
export const LADDER = '0,1,1,2,2,3,3,5,5,5,5,5,5,5,5';

/** Of a call. */
const TIMEOUTS = { headersTimeout: 20_000, bodyTimeout: 20_000 };

export async function openStorm(options: StormOptions): Promise<StormScene> {
  const postgres = await startOwnPostgres({ shared_buffers: '128MB', max_connections: 150 });
  await migrateWithLogins(postgres.url);
  const temporal: KillableTemporal = await (options.openTemporal ?? ownTemporal)();
  await temporal.start();
  const database = openDatabaseAt(postgres.url, { poolSize: 4, statementTimeoutMs: 0 });
  await keepChanges(database.sql);
  const keyRing = newKeyRingText();
  const parties = await openParties(database, { ...options, keyRing });
  const { receiver } = parties;
  const apis: (ApiProcess | null)[] = [];
  const workers: WorkerProcess[] = [];
  const ended: { output(): string; close(): Promise<void> }[] = [];
  const agents = new Map<string, Agent>();
  const { ask, ...heard } = openAsking();
  const taskQueue = randomTaskQueue('storm');
  let turn = 0;

  const scene: StormScene = {
    ...parties,
    ...heard,
    postgres,
    temporal,
    database,
    apis,
    workers,
    async ask(wanted) {
      turn += 1;
      const there = apis.filter((one) => one !== null);
      const api = there[turn % Math.max(there.length, 1)];
      if (api === undefined) return null;
      const { ca, port, internalPort } = api;
      const dispatcher = agents.get(ca) ?? new Agent({ connect: { ca }, connections: 32, ...TIMEOUTS });
      agents.set(ca, dispatcher);
      const origin = wanted.internal ? `http://127.0.0.1:${internalPort}` : `https://127.0.0.1:${port}`;
      return ask(wanted, { origin, dispatcher });
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
          ...options.environment,
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
