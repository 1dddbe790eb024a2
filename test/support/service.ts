import { startTestApi, type TestApi } from './api';
import { startTestWorker, type TestWorker } from './delivery';
import { newKeyRingText } from './notifications';
import { randomTaskQueue, type TestTemporal } from './temporal';
import { startWebhookReceiver, type WebhookReceiver } from './webhook-receiver';

/** An API, a ready worker and a receiver that belong together; no endpoint is registered yet. */
export interface TestService {
  readonly api: TestApi;
  readonly worker: TestWorker;
  readonly receiver: WebhookReceiver;
  /** The key ring's text. */
  readonly keys: string;
  readonly taskQueue: string;
  close(): Promise<void>;
}

export interface TestServiceOptions {
  readonly api?: Record<string, string>;
  readonly worker?: Record<string, string>;
  /** Way of the worker to Temporal, where that is not its own address. */
  readonly temporalAddress?: string;
}

export async function startTestService(
  temporal: TestTemporal,
  options: TestServiceOptions = {},
): Promise<TestService> {
  const keys = newKeyRingText();
  const taskQueue = randomTaskQueue();
  const [api, receiver] = await Promise.all([
    startTestApi({ ...(options.api && { environment: options.api }) }),
    startWebhookReceiver(),
  ]);
  const worker = await startTestWorker({
    databaseUrl: api.databaseUrl,
    temporal: { address: options.temporalAddress ?? temporal.address, namespace: temporal.namespace },
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
    async close() {
      await worker.close();
      await receiver.close();
      await api.close();
    },
  };
}
