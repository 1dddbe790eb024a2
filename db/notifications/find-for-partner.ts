import { runPrepared, type Reader } from '../postgres/prepared';
import { STATUS_SQL } from '../schema';
import type { EndpointQueue } from './hold';
import { msText, rowToListed, type Listed, type ListedAttempt, type ListedRow } from './partner-view';

export interface LoggedAttempt extends ListedAttempt {
  readonly number: number;
  readonly finishedMs: number | null;
}

/** A notification with all that was tried. */
export interface PartnerNotification extends Listed {
  /** As it is sent; empty once it has been removed. */
  readonly body: string;
  /** Oldest first. */
  readonly log: readonly LoggedAttempt[];
}

type Row = Omit<ListedRow, `last${string}`> & { readonly body: string; readonly log: string };

const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`;

const FIND = `
  select notification_id as "notificationId", event_id as "eventId", event_type as "eventType",
    ${STATUS_SQL} as status, end_reason as "endReason", application_id as "applicationId",
    merchant_reference as "merchantReference", sequence, attempts, ${msText('next_attempt_at', 'nextAttemptMs')},
    paused_at is not null as paused, ${msText('delivered_at', 'deliveredMs')}, body,
    (select coalesce(json_agg(json_build_object('number', a.attempt_number, 'atMs', ${ms('a.started_at')},
        'finishedMs', ${ms('a.finished_at')}, 'outcome', a.outcome, 'httpStatus', a.http_status, 'failure', a.failure,
        'durationMs', a.duration_ms) order by a.attempt_number), '[]')
      from delivery_attempts a where a.notification_id = $1)::text as log
  from notifications
  where notification_id = $1 and partner_id = $2 and environment = $3`;

/** Reads a notification of this partner and environment; null for all others. */
export async function findForPartner(
  reader: Reader,
  notificationId: string,
  { partnerId, environment }: EndpointQueue,
): Promise<PartnerNotification | null> {
  const [row] = await runPrepared<Row>(reader, FIND, [notificationId, partnerId, environment]);
  if (row === undefined) return null;
  const { body, log: text, ...listed } = row;
  const log = JSON.parse(text) as LoggedAttempt[];
  const last = log.findLast(({ finishedMs }) => finishedMs !== null);
  const withLast = {
    ...listed,
    lastAtMs: last?.atMs ?? null,
    lastOutcome: last?.outcome ?? null,
    lastHttpStatus: last?.httpStatus ?? null,
    lastFailure: last?.failure ?? null,
    lastDurationMs: last?.durationMs ?? null,
  };
  return { ...rowToListed(withLast), body, log };
}
