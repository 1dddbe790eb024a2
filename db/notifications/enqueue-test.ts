import { hint } from '../postgres/hints';
import { runPrepared, type Reader } from '../postgres/prepared';
import type { Notification } from './read';
import { SOMETHING_IS_DUE } from './channels';
import { addMonth, monthUse, type MonthUse, OF_THIS_MONTH, TAKE_UNIT, TEST_LIMIT_PER_MONTH } from './quota';

export interface NewTestNotification extends Pick<
  Notification,
  'notificationId' | 'eventId' | 'eventType' | 'partnerId' | 'environment' | 'body'
> {
  readonly requestId: string;
  /** `traceparent` of the request; none where no traces are made. */
  readonly traceParent?: string | null;
}

export type TestNotificationAnswer =
  | { readonly kind: 'stored' }
  | { readonly kind: 'no_endpoint' }
  | ({ readonly kind: 'limit_reached'; readonly limit: number } & MonthUse);

const ACTIVE = `exists (select 1 from webhook_endpoints
  where partner_id = $1 and environment = $2 and state = 'active')`;

const INSERT = `
  with unit as (${TAKE_UNIT} and ${ACTIVE} returning month),
  stored as (
    insert into notifications
      (partner_id, environment, event_type, notification_id, event_id, body, request_id, trace_parent, reserved_month)
    select $1, $2, $3, $4, $5, $6, $7, $8, month from unit returning notification_id)
  select ${ACTIVE} as active, exists (select 1 from monthly_counts where ${OF_THIS_MONTH}) as counted,
    exists (select 1 from stored) as stored`;

/**
 * Stores a test notification with its unit of the month's limit in one statement, and then wakes the dispatcher: the calls
 * of a partner lock its count one after the other, so each may hold it for no longer than a commit. Nothing is stored,
 * and no unit taken, without an active endpoint or when the limit is reached.
 */
export async function insertTestNotification(
  reader: Reader,
  wanted: NewTestNotification,
): Promise<TestNotificationAnswer> {
  for (;;) {
    const answer = await tryInsert(reader, wanted);
    if (answer === 'no_count') {
      await addMonth(reader, wanted);
      continue;
    }
    if (answer !== 'limit_reached') return answer;
    const use = await monthUse(reader, wanted);
    // Else one that was under way has failed in between, or the month has ended: there is room now.
    if (use.delivered + use.reserved >= TEST_LIMIT_PER_MONTH)
      return { kind: 'limit_reached', limit: TEST_LIMIT_PER_MONTH, ...use };
  }
}

async function tryInsert(
  reader: Reader,
  wanted: NewTestNotification,
): Promise<Exclude<TestNotificationAnswer, { kind: 'limit_reached' }> | 'limit_reached' | 'no_count'> {
  const { notificationId, eventId, eventType, partnerId, environment, body, requestId } = wanted;
  const [row] = await runPrepared<{ active: boolean; counted: boolean; stored: boolean }>(reader, INSERT, [
    partnerId,
    environment,
    eventType,
    notificationId,
    eventId,
    body,
    requestId,
    wanted.traceParent ?? null,
  ]);
  if (row === undefined) throw new Error('the database did not say what became of a test notification');
  if (row.stored) {
    hint(reader, SOMETHING_IS_DUE);
    return { kind: 'stored' };
  }
  if (!row.active) return { kind: 'no_endpoint' };
  return row.counted ? 'limit_reached' : 'no_count';
}
