import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SendWebhook } from '../../activities';
import { readConfig } from '../../runtime/config/config';
import { createLogger } from '../../runtime/telemetry/logger';
import type * as Options from '../../worker/options';
import type * as StartWorker from '../../worker/start-worker';
import { emittedBy } from '../../testbed/emitted';
import { demand } from './on-demand';
import { asRole } from '../../testbed/roles';
import type { SharedBundle } from './temporal-run';
import { removeDirectory, temporaryDirectory } from '../../testbed/temporary-directory';
import type { WebhookReceiver } from './webhook-receiver';
import { succeeds, until } from '../../testbed/until';
import { workerTuning } from './worker-tuning';

export type TestWorker = Awaited<ReturnType<typeof startTestWorker>>;

export interface TestWorkerOptions {
  readonly databaseUrl: string;
  readonly temporal: { readonly address: string; readonly namespace: string };
  readonly taskQueue: string;
  /** Whose settings and authority the worker gets. */
  readonly receiver: Pick<WebhookReceiver, 'ca' | 'environment'>;
  readonly keys: string;
  /** Settings, and what `workerTuning` reads. */
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * A real worker in this process: dispatcher, reconciler, both Temporal workers, real TLS to the receiver.
 * @param options.send in place of the sender that its settings make.
 */
export async function startTestWorker(options: TestWorkerOptions & { readonly send?: SendWebhook }) {
  const { databaseUrl, temporal, taskQueue, receiver, keys, send } = options;
  const directory = await temporaryDirectory('worker');
  const caFile = join(directory, 'ca.pem');
  await writeFile(caFile, receiver.ca);
  const { codePath } = await demand<SharedBundle>('bundle');
  // Here, because they load Temporal's SDK, which most files that wait with `until` do not need.
  const { startWorker } = require('../../worker/start-worker') as typeof StartWorker;
  const { workerOptions } = require('../../worker/options') as typeof Options;
  const logs: string[] = [];
  const emit = emittedBy('worker-log');
  const write = (line: string) => {
    logs.push(line);
    emit(line);
  };
  const config = readConfig({
    WEBHOOK_KEYS: keys,
    WEBHOOK_CA_FILE: caFile,
    RETENTION_AT: 'off',
    ...receiver.environment,
    ...options.environment,
  });
  const tuning = workerTuning({ TASK_QUEUE: taskQueue, WORKFLOW_BUNDLE: codePath, ...options.environment });
  const { address, namespace } = temporal;
  const worker = await startWorker({
    ...workerOptions(
      config,
      {
        databaseUrl: asRole(databaseUrl, 'worker'),
        temporal: { namespace, connection: { address } },
        logger: createLogger({ LOG_LEVEL: 'debug' }, { write }),
      },
      tuning,
    ),
    ...(send && { send }),
  });
  const isReady = () => succeeds(worker.checkReady());
  return {
    worker,
    logs,
    /** Whether its `/ready` would say so. */
    isReady,
    /** Waits until it does, for at most a minute. */
    ready: () => until(isReady, 'the worker is ready', 60_000),
    async close() {
      // A test may have taken its database away.
      await worker.registry.metrics().then(emittedBy('worker-metrics'), () => undefined);
      await worker.close();
      await removeDirectory(directory);
    },
  };
}
