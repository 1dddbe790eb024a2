import type { DbOrTransaction } from '../postgres/connect';
import { hint } from '../postgres/hints';
import { runPrepared } from '../postgres/prepared';
import type { notifications } from '../schema';
import { hasActiveEndpointText, noEndpointReasonText } from './hold';
import { SOMETHING_IS_DUE } from './channels';

type Stored = typeof notifications.$inferSelect;

type NewStatusNotification = Pick<
  Stored,
  'notificationId' | 'eventId' | 'eventType' | 'partnerId' | 'environment' | 'applicationId' | 'sequence'
> &
  Pick<Stored, 'merchantReference' | 'body' | 'createdAt' | 'requestId'> &
  Partial<Pick<Stored, 'traceParent'>>;

const STORE = `
  with l as (select $4::text as partner_id, $5::text as environment),
  born as (select *, ${hasActiveEndpointText('l')} as active from l)
  insert into notifications (notification_id, event_id, event_type, partner_id, environment, application_id,
    sequence, merchant_reference, body, created_at, request_id, trace_parent, state, end_reason, held_at)
  select $1, $2, $3, partner_id, environment, $6,
    $7::int, $8, $9, $10::text::timestamptz, $11, $12,
    case when active then 'pending' else 'held' end, case when not active then ${noEndpointReasonText('l')} end,
    case when not active then service_now() end
  from born l returning state`;

/**
 * Stores a status notification in one statement, because the application's lock is held meanwhile. The dispatcher is woken
 * after the commit. It begins as `pending`, or as `held` while its partner has no active endpoint; should one come or go
 * meanwhile, the keeper puts it right. Not for tests, which are never held.
 */
export async function storeStatusNotification(
  tx: DbOrTransaction,
  row: NewStatusNotification,
): Promise<void> {
  const { notificationId, eventId, eventType, partnerId, environment } = row;
  const { applicationId, sequence, merchantReference, body, createdAt, requestId, traceParent = null } = row;
  const [stored] = await runPrepared<{ state: string }>(tx, STORE, [
    notificationId,
    eventId,
    eventType,
    partnerId,
    environment,
    applicationId,
    sequence,
    merchantReference,
    body,
    createdAt.toISOString(),
    requestId,
    traceParent,
  ]);
  if (stored?.state === 'pending') hint(tx, SOMETHING_IS_DUE);
}
