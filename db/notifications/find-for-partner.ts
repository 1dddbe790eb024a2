import { msText as ms, runPrepared, type Reader } from '../postgres/prepared';
import { STATUS_SQL } from '../schema';
import type { EndpointQueue } from './hold';
import {
  ATTEMPT_JSON,
  LISTED,
  rowToListed,
  type Listed,
  type ListedAttempt,
  type ListedRow,
} from './partner-view';

interface LoggedAttempt extends ListedAttempt {
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

type Row = Omit<ListedRow, 'last'> & { readonly body: string; readonly log: string };

const FIND = `
  select ${LISTED}, ${STATUS_SQL} as status, n.body,
    (select coalesce(json_agg(json_build_object(${ATTEMPT_JSON}, 'number', a.attempt_number,
        'finishedMs', ${ms('a.finished_at')}) order by a.attempt_number), '[]')
      from delivery_attempts a where a.notification_id = $1)::text as log
  from notifications n
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
  const last = log.findLast(({ finishedMs }) => finishedMs !== null) ?? null;
  return { ...rowToListed(listed, last), body, log };
}
