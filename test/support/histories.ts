import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WorkflowNotFoundError, type Client, type WorkflowHandle } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { orderDeliveries, type Order } from '../../db/notifications/orders';
import type { Database } from '../../db/postgres/connect';
import { TEST_EVENT_TYPE } from '../../domain/notification-states';
import { createDeliveryStarter } from '../../worker/start-delivery';
import { deliveryWorkflowId, WAKE_SIGNAL } from '../../workflows/names';

const { History } = temporal.api.history.v1;
const root = join(__dirname, '../..');
const folder = join(root, 'test/histories');

/**
 * Keeps the history of a run to be replayed, when RECORD_HISTORIES is set; never replaces one, because what
 * deployed workers have written is what a new one must be able to go on with.
 */
export async function keepHistory(name: string, handle: WorkflowHandle): Promise<void> {
  const file = join(folder, `${name}.json`);
  if (process.env['RECORD_HISTORIES'] === undefined || existsSync(file)) return;
  const history = History.fromObject(await handle.fetchHistory());
  const json = History.toObject(history, { longs: String, bytes: String, enums: String });
  // A failure's stack trace names the folder it was recorded in.
  writeFileSync(file, `${JSON.stringify(json, null, 1).replaceAll(`${root}/`, '')}\n`);
}

/** Gives an order to a delivery, as `ops` does. */
export async function orderDelivery(
  { database: { sql }, client }: { readonly database: Pick<Database, 'sql'>; readonly client: Client },
  order: Order,
  notificationId: string,
): Promise<void> {
  const [ordered] = await orderDeliveries(sql, order, [notificationId], 'operator');
  if (ordered === undefined) throw new Error(`${notificationId} takes no order`);
  // One that has just ended, or begins, reads its row anyway.
  await deliveryOf(client, notificationId, ordered.generation)
    .signal(WAKE_SIGNAL)
    .catch((error: unknown) => {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    });
}

/** The workflow of a notification's generation. */
export const deliveryOf = (client: Client, notificationId: string, generation = 1) =>
  client.workflow.getHandle(deliveryWorkflowId(notificationId, generation));

/** Starts deliveries of tests as the dispatcher of a build does, without the fast path. */
export function starterOf(client: Client, taskQueue: string, build = { eager: () => true }) {
  const start = createDeliveryStarter({
    client,
    taskQueue,
    fastPath: { reserve: () => 'endpoint_not_fast', cancel: () => undefined },
    build,
    onPath: () => undefined,
  });
  const of = { partnerId: 'P100001', environment: 'sandbox', eventType: TEST_EVENT_TYPE } as const;
  return (notificationId: string) => start({ ...of, notificationId, generation: 1, applicationId: null });
}

/** The local activities of a run that did not decline, by their types, in order. */
export async function localActivities(handle: WorkflowHandle): Promise<string[]> {
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap(({ markerRecordedEventAttributes: marker }) => {
    const data = marker?.details?.['data']?.payloads?.[0]?.data;
    const result = marker?.details?.['result']?.payloads?.[0]?.data;
    const declined = result && Buffer.from(result).toString() === 'null';
    if (marker?.markerName !== 'core_local_activity' || !data || declined) return [];
    return [(JSON.parse(Buffer.from(data).toString('utf8')) as { activity_type: string }).activity_type];
  });
}

/** Every kept history, by its name. */
export const keptHistories = (): { workflowId: string; history: unknown }[] =>
  readdirSync(folder).map((file) => ({
    workflowId: file.replace('.json', ''),
    history: History.fromObject(JSON.parse(readFileSync(join(folder, file), 'utf8')) as object),
  }));

/** Build ids of the workers that completed the workflow tasks of a run, in order; null for one without a version. */
export async function deploymentsOf(handle: WorkflowHandle): Promise<(string | null)[]> {
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap(({ workflowTaskCompletedEventAttributes: completed }) =>
    completed ? [completed.deploymentVersion?.buildId ?? null] : [],
  );
}
