import { runWorker } from '../runtime/worker/run-worker';

/** One worker process on an existing Postgres and Temporal: it sends the webhooks. */
runWorker().catch((error: unknown) => {
  console.error(`worker: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
