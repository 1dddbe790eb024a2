import { WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { createActivities } from '../../activities';
import { watchRefusals } from '../../activities/refusals';
import { createPartner } from '../../db/catalogue/partners';
import { SEARCH_ATTRIBUTES } from '../../domain/notification-states';
import { DELIVERY_LADDER_MS, TEST_LADDER_MS } from '../../domain/delivery-outcome';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { createResolver } from '../../outbound/names';
import { createSender, hmacSha256, signEd25519 } from '../../outbound/sender';
import { openWorkerSession } from '../../worker/session';
import { createSendSlots } from '../../worker/slots';
import { createFastPath } from '../../worker/fast-path';
import { deliveryWorkflowId } from '../../workflows/names';
import type { deliverNotification } from '../../workflows';
import { openTestDatabase } from '../support/database';
import { addEndpoint, advanceServiceClock, newKeyRingText, storeTest } from '../../testbed/notifications';
import { randomTaskQueue, sessionOptions, type TestTemporal } from '../support/temporal';
import { RECEIVER_NAME, startWebhookReceiver } from '../support/webhook-receiver';

const KEYWORD = 2;
export const PARTNER_ID = 'P100001';
export const QUEUE = `${PARTNER_ID}/sandbox`;

/** As in production, but for the length of the history that is kept. */
export const MOST_BUSY_ROUNDS = 5;

export type Delivery = WorkflowHandle<typeof deliverNotification>;

/** The fast path has a slot reserved. */
export type Path = 'regular' | 'fast';

export type Stage = Awaited<ReturnType<typeof openStage>>;

/** Workers with the real activities, Postgres and a TLS receiver, on a Temporal whose time a test may skip. */
export async function openStage(temporal: TestTemporal) {
  // The Java server knows this call, and not the queries by which runtime/temporal/namespace.ts finds out what is missing.
  await temporal.env.connection.operatorService.addSearchAttributes({
    namespace: temporal.namespace,
    searchAttributes: Object.fromEntries(SEARCH_ATTRIBUTES.map((name) => [name, KEYWORD])),
  });
  const database = await openTestDatabase({ poolSize: 5 });
  const receiver = await startWebhookReceiver();
  const keys = newKeyRingText();
  await createPartner(database.db, { partnerId: PARTNER_ID, name: 'Example' });
  const { endpointId } = await addEndpoint(database, {
    partnerId: PARTNER_ID,
    url: receiver.url,
    keyRing: keys,
  });
  const sender = createSender({
    allowedCidrs: ['127.0.0.0/8'],
    // A second receiver may take the place of the first.
    allowedPorts: Array.from({ length: 65_535 }, (_, at) => at + 1),
    hosts: new Map([[RECEIVER_NAME, ['127.0.0.1']]]),
    resolver: createResolver(),
    ca: receiver.ca,
    now: Date.now,
  });
  const sendSlots = createSendSlots({
    slots: 400,
    monotonicMs: () => performance.now(),
    random: Math.random,
    onBusy: () => undefined,
  });
  const taskQueue = randomTaskQueue();
  const fastPath = createFastPath({
    speed: { of: () => (endpointId === null ? null : { endpointId, pace: 'fast' }) },
    slots: 20,
    mostPerEndpoint: 16,
    monotonicMs: () => performance.now(),
    ownDelayMs: () => 0,
  });
  let aheadMs = 0;
  /** The database's clock follows Temporal's, which skips waits. It is ahead a little, as their moments are read one after the other. */
  async function followTime(): Promise<void> {
    const aheadNowMs = (await temporal.env.currentTimeMs()) - Date.now();
    if (Math.abs(aheadNowMs - aheadMs) < 100) return;
    aheadMs = aheadNowMs;
    await advanceServiceClock(database, (aheadMs + 200) / 1_000);
  }
  const timed =
    <Input, Output>(activity: (input: Input) => Promise<Output>) =>
    async (input: Input): Promise<Output> => {
      await followTime();
      return activity(input);
    };
  const { sends, records, local } = createActivities({
    sql: database.sql,
    ladders: { status: DELIVERY_LADDER_MS, test: TEST_LADDER_MS },
    fastPath,
    keyRing: parseKeyRing(keys),
    send: sender.send,
    hmac: hmacSha256,
    sign: signEd25519,
    sendSlots,
    reach: { turn: () => null, judged: (_of, send) => send() },
    mostBusyRounds: MOST_BUSY_ROUNDS,
    refusals: watchRefusals(() => undefined),
    onRequeued: () => undefined,
    now: () => new Date(),
    monotonicMs: () => performance.now(),
    warn: () => undefined,
    onAttempt: () => undefined,
    onEnd: () => undefined,
    onRecorded: () => undefined,
    onRemovedMuch: () => undefined,
    connectForRetention: () => database,
  });
  const session = await openWorkerSession(await sessionOptions(temporal, taskQueue), {
    sends: { sendAttempt: timed(sends.sendAttempt) },
    records,
    local: { attemptAtOnce: timed(local.attemptAtOnce) },
  });
  /** Starts the delivery of a stored notification with this ladder. */
  const deliver = async (
    notificationId: string,
    ladderMs: readonly number[],
    path: Path = 'regular',
    generation = 1,
  ): Promise<Delivery> => {
    await database.sql`
      update deliveries set ladder_ms = ${`{${ladderMs.join()}}`}::text::integer[] where notification_id = ${notificationId}`;
    if (path === 'fast') {
      fastPath.reserve({ notificationId, partnerId: PARTNER_ID, environment: 'sandbox' });
    }
    return temporal.client.workflow.start<typeof deliverNotification>('deliverNotification', {
      workflowId: deliveryWorkflowId(notificationId, generation),
      taskQueue,
      args: [{ notificationId, generation }],
    });
  };
  return {
    database,
    receiver,
    sendSlots,
    deliver,
    /** Stores a test notification and starts its delivery with this ladder. */
    async start(ladderMs: readonly number[], path?: Path) {
      const { notificationId } = await storeTest(database, { partnerId: PARTNER_ID });
      return { notificationId, handle: await deliver(notificationId, ladderMs, path) };
    },
    async close() {
      await session.stop();
      sender.close();
      await receiver.close();
      await database.close();
    },
  };
}

/** How a delivery ended: as Temporal shows it, with the type and the message of a failure. */
export async function endOf(handle: Delivery) {
  const end = await handle.result().catch((error: unknown) => {
    if (!(error instanceof WorkflowFailedError)) throw error;
    const { cause } = error;
    return cause instanceof ApplicationFailure ? { reason: cause.type, message: cause.message } : {};
  });
  return { workflow: (await handle.describe()).status.name, ...end };
}

/** The timers of a run, in milliseconds, in order. */
export async function timersOf(handle: WorkflowHandle): Promise<number[]> {
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap((event) => {
    const timeout = event.timerStartedEventAttributes?.startToFireTimeout;
    return timeout ? [Number(timeout.seconds ?? 0) * 1_000 + (timeout.nanos ?? 0) / 1e6] : [];
  });
}
