import { buildInternalApp } from '../api/internal-app';
import { runWorker } from '../worker/run-worker';
import { main } from './main';

const HELP = {
  usage: 'node dist/bin/worker.js',
  purpose:
    'One worker process on an existing Postgres and Temporal: it sends the webhooks. SIGTERM stops it in order.',
};

/** One worker process on an existing Postgres and Temporal: it sends the webhooks. */
main('worker', HELP, () => runWorker(buildInternalApp));
