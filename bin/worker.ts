import { runWorker } from '../runtime/worker/run-worker';
import { main } from './main';

/** One worker process on an existing Postgres and Temporal: it sends the webhooks. */
main('worker', runWorker);
