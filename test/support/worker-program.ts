import { runWorker } from '../../bin/worker';
import { workerTuning } from './worker-tuning';

/** bin/worker.ts with what tests vary. */
runWorker(workerTuning(process.env)).catch((error: unknown) => {
  console.error(`worker: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
