import type { Client } from '@temporalio/client';
import type { Database } from '../../db/postgres/connect';
import { deliveryOf, localActivities } from './histories';
import { comesTo, storeTest } from './notifications';
import { storeRow } from './partner-events';

/** How first attempts are made: on the queue of the sends, or within the workflow task. */
export const PATHS = ['regular', 'fast'] as const;
export type Path = (typeof PATHS)[number];

/** Types of the local activities of a delivery's first generation. */
export const localActivitiesOf = (client: Client, notificationId: string) =>
  localActivities(deliveryOf(client, notificationId));

/** Delivers tests until the worker that runs takes the fast path to this partner's endpoint, which it is told was fast before. */
export async function warmUp(
  { database, client }: { readonly database: Database; readonly client: Client },
  partnerId: string,
): Promise<void> {
  await rememberFastAttempts(database, partnerId);
  for (let tries = 0; tries < 20; tries += 1) {
    const { notificationId } = await storeTest(database, { partnerId });
    await comesTo(database, notificationId, 'delivered');
    await deliveryOf(client, notificationId).result();
    if ((await localActivitiesOf(client, notificationId)).length > 0) return;
  }
  throw new Error('the worker does not take the fast path');
}

async function rememberFastAttempts({ sql }: Database, partnerId: string): Promise<void> {
  const eventType = 'credit_application.test';
  const notificationId = await storeRow({ sql }, { partnerId, eventType, state: 'cancelled' });
  await sql`
    insert into delivery_attempts
      (notification_id, attempt_number, generation, endpoint_id, finished_at, outcome, http_status, duration_ms)
    select ${notificationId}, nth, 1, endpoint_id, service_now(), 'delivered', 200, 20
    from webhook_endpoints, generate_series(1, 10) as nth
    where partner_id = ${partnerId} and environment = 'sandbox' and state = 'active'`;
}
