import type { Client } from '@temporalio/client';
import type { Database } from '../../db/postgres/connect';
import { deliveryOf, localActivities } from './histories';
import { comesTo, storeTest } from '../../testbed/notifications';

/** How first attempts are made: on the queue of the sends, or within the workflow task. */
export const PATHS = ['regular', 'fast'] as const;
export type Path = (typeof PATHS)[number];

/** Types of the local activities of a delivery's first generation. */
export const localActivitiesOf = (client: Client, notificationId: string) =>
  localActivities(deliveryOf(client, notificationId));

/** Delivers tests until the worker that runs takes the fast path to this partner's endpoint: the first, unless it has failed lately. */
export async function warmUp(
  { database, client }: { readonly database: Database; readonly client: Client },
  partnerId: string,
): Promise<void> {
  for (let tries = 0; tries < 3; tries += 1) {
    const { notificationId } = await storeTest(database, { partnerId });
    await comesTo(database, notificationId, 'delivered');
    await deliveryOf(client, notificationId).result();
    if ((await localActivitiesOf(client, notificationId)).length > 0) return;
  }
  throw new Error('the worker does not take the fast path');
}
