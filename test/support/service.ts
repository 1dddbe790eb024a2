import { startTestApi, type TestApi } from './api';
import { startTestWorker, type TestWorker } from './delivery';
import { useDatabase } from './database';
import { addEndpoint, newKeyRingText, newPartner } from '../../testbed/notifications';
import { randomTaskQueue, testTemporal, type TestTemporal } from './temporal';
import { startWebhookReceiver, type WebhookReceiver } from './webhook-receiver';

/** An API, a ready worker and a receiver that belong together; no endpoint is registered yet. */
export type TestService = Awaited<ReturnType<typeof startTestService>>;

export interface TestServiceOptions {
  readonly api?: Record<string, string>;
  readonly worker?: Record<string, string>;
  /** An existing database to use; it is not dropped. */
  readonly databaseUrl?: string;
}

export async function startTestService(temporal: TestTemporal, options: TestServiceOptions = {}) {
  const keys = newKeyRingText();
  const taskQueue = randomTaskQueue();
  const [api, receiver] = await Promise.all([
    startTestApi({
      ...(options.api && { environment: options.api }),
      ...(options.databaseUrl !== undefined && { databaseUrl: options.databaseUrl }),
    }),
    startWebhookReceiver(),
  ]);
  const worker = await startTestWorker({
    databaseUrl: api.databaseUrl,
    temporal,
    taskQueue,
    receiver,
    keys,
    ...(options.worker && { environment: options.worker }),
  });
  await worker.ready();
  return {
    api,
    worker,
    receiver,
    keys,
    taskQueue,
    close: async () => {
      await worker.close();
      await receiver.close();
      await api.close();
    },
  };
}

/** The same for the tests of a file: open from its first hook to its last. @param prepare what comes before it, with its options */
export function useService(
  prepare: TestServiceOptions | (() => Promise<TestServiceOptions>) = {},
  temporal = testTemporal(),
) {
  const service = { api: {} as TestApi, worker: {} as TestWorker, receiver: {} as WebhookReceiver };
  let started: TestService;
  beforeAll(async () => {
    const options = typeof prepare === 'function' ? await prepare() : prepare;
    started = await startTestService(temporal, options);
    for (const part of ['api', 'worker', 'receiver'] as const) Object.assign(service[part], started[part]);
  }, 300_000);
  afterAll(() => started?.close());
  return {
    ...service,
    /** Registers an endpoint there, in place of the one before. */
    register: (partnerId = service.api.partnerId, environment: 'sandbox' | 'live' = 'sandbox') =>
      addEndpoint(service.api.database, {
        partnerId,
        environment,
        url: service.receiver.url,
        keyRing: started.keys,
      }),
    get keys() {
      return started.keys;
    },
    get taskQueue() {
      return started.taskQueue;
    },
  };
}

/** A database, a receiver and workers on one task queue, which belong to the tests of a file. None runs before `start`. */
export function useWorkers(temporal = testTemporal()) {
  const keys = newKeyRingText();
  const taskQueue = randomTaskQueue();
  const workers: TestWorker[] = [];
  const receiver = {} as WebhookReceiver;
  const stop = async () => void (await Promise.all(workers.splice(0).map((worker) => worker.close())));
  beforeAll(async () => void Object.assign(receiver, await startWebhookReceiver()));
  // Before the database goes.
  afterAll(async () => {
    await stop();
    await receiver.close();
  });
  const database = useDatabase({ poolSize: 6, statementTimeoutMs: 0 });
  return {
    keys,
    taskQueue,
    workers,
    database,
    receiver,
    /** Starts another one and waits until it is ready. */
    start: async (environment: Readonly<Record<string, string>> = {}): Promise<TestWorker> => {
      const databaseUrl = database.url;
      const worker = await startTestWorker({ databaseUrl, temporal, taskQueue, receiver, keys, environment });
      workers.push(worker);
      await worker.ready();
      return worker;
    },
    stop,
    /** A new partner with an endpoint there, or at this address. */
    newPartner: async (url = receiver.url): Promise<string> => {
      const { partnerId } = await newPartner(database, keys);
      await addEndpoint(database, { partnerId, url, keyRing: keys });
      return partnerId;
    },
  };
}
