import { signEd25519, hmacSha256 } from '../../outbound/sender';
import { Client } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import pino from 'pino';
import { signatureHeaders } from '../../domain/webhook';
import { generateKeyPair } from '../../db/endpoints/key-pairs';
import { readConfig } from '../../runtime/config/config';
import { MOST_SENDS, MOST_WORKFLOW_TASKS, workerOptions } from '../../worker/options';
import { temporalTarget } from '../../runtime/temporal/temporal-target';
import { serveMessages } from '../harness/children';
import type { Moment } from '../harness/receiver';
import { monotonicMs } from '../harness/rounds';
import { benchEvent } from '../harness/stored';
import type { BareActivities, BareInput, bareDelivery } from './bare-workflows';
import type { Feeding, RanMessage } from './ways';

/**
 * The floor of `npm run bench:delivery`, as anyone would write it on a well-tuned server: one process that starts a workflow and
 * works it. Its HTTP client, its settings of the SDK and its signatures are ours;
 * there is no database, nothing is recorded, nothing counted, no endpoint and no secret looked up.
 */
async function main(): Promise<void> {
  const config = readConfig();
  const [secret = '', ...hosts] = process.argv.slice(2);
  const logger = new DefaultLogger('ERROR');
  Runtime.install({ logger, shutdownSignals: [] });
  const temporal = temporalTarget(config);
  const { send } = workerOptions(config, { databaseUrl: '', temporal, logger: pino({ level: 'silent' }) });

  const keyPairs = [generateKeyPair()];
  let sent: () => void = () => undefined;
  const activities: BareActivities = {
    async send({ eventId, url }: BareInput) {
      const body = JSON.stringify(benchEvent(eventId, eventId));
      const timestamp = Math.floor(Date.now() / 1_000);
      const headers = signatureHeaders({
        body,
        eventId,
        timestamp,
        secrets: [secret],
        keyPairs,
        hmac: hmacSha256,
        sign: signEd25519,
      });
      const { outcome } = await send({
        endpointId: url,
        alone: false,
        onSurplus: () => undefined,
        url,
        headers: { 'Content-Type': 'application/json; charset=utf-8', ...headers },
        body,
      });
      if (outcome.kind !== 'delivered') throw new Error(outcome.failure);
      sent();
      return outcome.httpStatus;
    },
  };

  const connection = await NativeConnection.connect(temporal.connection);
  const { namespace } = temporal;
  const workflowsPath = require.resolve('./bare-workflows');
  const workflowBundle = await bundleWorkflowCode({ workflowsPath, logger });
  const worker = await Worker.create({
    connection,
    namespace,
    taskQueue: 'bare',
    workflowBundle,
    activities,
    // As ours.
    maxConcurrentActivityTaskExecutions: MOST_SENDS,
    maxConcurrentWorkflowTaskExecutions: MOST_WORKFLOW_TASKS,
    maxConcurrentLocalActivityExecutions: MOST_WORKFLOW_TASKS,
  });
  const client = new Client({ connection, namespace });
  const running = worker.run();

  const start = (input: BareInput) =>
    client.workflow.start<typeof bareDelivery>('bareDelivery', {
      taskQueue: 'bare',
      args: [input],
      workflowId: input.eventId,
      requestEagerStart: true,
    });

  async function run({ count, inFlight, restMs }: Feeding): Promise<RanMessage> {
    const started: Moment[] = [];
    let done = 0;
    await new Promise<void>((resolve, reject) => {
      const next = () => {
        if (started.length >= count) return;
        const eventId = `evt_bare_${monotonicMs()}_${started.length}`;
        const url = hosts[started.length % hosts.length] ?? '';
        started.push([eventId, monotonicMs()]);
        start({ eventId, url }).catch(reject);
      };
      sent = () => {
        done += 1;
        if (done === count) resolve();
        else if (restMs > 0) setTimeout(next, restMs);
        else next();
      };
      for (let at = 0; at < inFlight; at += 1) next();
    });
    return { started };
  }

  serveMessages(run, () => {
    worker.shutdown();
    return running;
  });
  await running;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
