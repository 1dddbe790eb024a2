import { sql, type SQL } from 'drizzle-orm';
import { createdMs, lowestNotificationId } from './id-time';
import type { DbOrTransaction } from '../postgres/connect';
import { hint } from '../postgres/hints';
import type { Notification } from './read';
import { SOMETHING_IS_DUE } from './channels';
import { updateSql } from './update';

/** How long an event waits after the first attempt of an earlier one of its application. */
export const ORDER_WAIT_SECONDS = 60;

// The claim decides what goes (claim_notifications). These two keep it from looking, claim after claim, at thousands of events
// that wait behind ones that fail: they are not due until their minute is over, or the earlier one has ended. They never
// wait for a row lock; what somebody has locked is left to the claim.

/** An event's first attempt has failed: the later ones of its application are due a minute after it began. */
export async function putOffLater(tx: DbOrTransaction, event: Notification): Promise<void> {
  if (!(await hasLater(tx, event))) return;
  const oldest = oldestLater(event);
  await tx.execute(sql`
    with later as (
      select l.notification_id, n.first_attempt_at + make_interval(secs => ${ORDER_WAIT_SECONDS}) as at
      from notifications n join notifications l on l.application_id = n.application_id and l.sequence > n.sequence
      where n.notification_id = ${event.notificationId} and n.delivered_at is null and l.notification_id >= ${oldest}
        and l.state = 'pending' and l.taken_at is null and l.priority >= n.priority
        and l.due_at < n.first_attempt_at + make_interval(secs => ${ORDER_WAIT_SECONDS})
      for update of l skip locked)
    ${updateSql('put_off', { due_at: sql`later.at` })} from later ${whereLater(oldest)}`);
}

/** An event has ended: the later ones of its application, which a failed attempt of it had put off, are due at once. */
export async function releaseLater(tx: DbOrTransaction, event: Notification): Promise<void> {
  // It ends before or with its first attempt, so none has failed and nothing was put off.
  if (event.attempts < 2 && event.takenAt !== null) return;
  if (!(await hasLater(tx, event))) return;
  const oldest = oldestLater(event);
  const rows = await tx.execute(sql`
    with later as (
      select notification_id from notifications
      where application_id = ${event.applicationId} and sequence > ${event.sequence} and notification_id >= ${oldest}
        and state = 'pending' and taken_at is null and due_at > service_now()
      for update skip locked)
    ${updateSql('due_now', {})} from later ${whereLater(oldest)}
    returning 1`);
  if (rows.length > 0) hint(tx, SOMETHING_IS_DUE);
}

/** What follows is planned anew each time, for all months that it may touch; most events that fail or end have no later one. */
async function hasLater(tx: DbOrTransaction, { applicationId, sequence }: Notification): Promise<boolean> {
  if (applicationId === null) return false;
  const [application] = await tx.execute(sql`
    select 1 from credit_applications where application_id = ${applicationId} and sequence > ${sequence}`);
  return application !== undefined;
}

const DAY_MS = 86_400_000;

/** No later event has a lower id: the clocks of API processes, which give ids, are less than a day apart. Months before it are left out. */
const oldestLater = ({ notificationId }: Notification): string =>
  lowestNotificationId(createdMs(notificationId) - DAY_MS);

const whereLater = (oldest: string): SQL =>
  sql`where t.notification_id = later.notification_id and t.notification_id >= ${oldest}`;
