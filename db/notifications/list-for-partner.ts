import { runPrepared, type Parameter, type Reader } from '../postgres/prepared';
import type { NotificationStatus } from '../../domain/notification-status';
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

/** Filters and their columns, each with an index (db/schema/notifications.ts), the one that leaves the fewest first. */
const FILTERS = [
  ['eventId', 'event_id'],
  ['applicationId', 'application_id'],
  ['merchantReference', 'merchant_reference'],
  ['status', 'status'],
  ['eventType', 'event_type'],
  // Without an index of its own: it always comes with an application, which has few.
  ['sequence', 'sequence'],
] as const;

type Column = (typeof FILTERS)[number][1];

/**
 * With several filters one index serves the first; the rest is looked for in so many notifications at most: some milliseconds. The
 * page may be short then, and the next goes on from there.
 */
export const MOST_SCANNED = 1_000;

export interface PageWanted extends EndpointQueue {
  readonly eventId?: string | undefined;
  readonly applicationId?: string | undefined;
  readonly merchantReference?: string | undefined;
  readonly status?: NotificationStatus | undefined;
  readonly eventType?: string | undefined;
  /** Only with `applicationId`. */
  readonly sequence?: number | undefined;
  /** Ids from the first, inclusive, to the second, exclusive. */
  readonly fromId: string;
  readonly beforeId: string;
  /** 1 to 100. */
  readonly limit: number;
}

export interface Page {
  readonly notifications: readonly Listed[];
  /** Where the next page begins: ids before this one. Null at the end. */
  readonly next: string | null;
}

/**
 * A page of a partner's notifications, newest first. It follows one index, without a sort, and reads one notification more than it
 * gives; with several filters at most MOST_SCANNED. In each month of the span the index is entered once.
 */
export async function listForPartner(reader: Reader, wanted: PageWanted): Promise<Page> {
  const { limit } = wanted;
  const { text, parameters, filters } = pageQuery(wanted);
  const rows = await runPrepared<ListedRow>(reader, text, [...parameters, limit + 1]);
  const notifications = rows
    .slice(0, limit)
    .map(({ last, ...row }) => rowToListed(row, last === null ? null : (JSON.parse(last) as ListedAttempt)));
  if (rows.length > limit) return { notifications, next: notifications.at(-1)?.notificationId ?? null };
  if (filters.length < 2) return { notifications, next: null };
  return { notifications, next: await lastScanned(reader, wanted, filters[0]) };
}

/** The statement of a page; `limit` + 1 is its last parameter. For tests of its plan, too. */
export function pageQuery(wanted: PageWanted) {
  const { environment, partnerId, fromId, beforeId } = wanted;
  const filters = FILTERS.filter(([name]) => wanted[name] !== undefined);
  const parameters: Parameter[] = [environment, partnerId, fromId, beforeId];
  parameters.push(...filters.map(([name]) => wanted[name] ?? null));
  const [first, ...rest] = filters.map(([, column]) => column);
  // The inner limit is a constant, so that the planner knows that few are wanted; reading stops at the outer one.
  const text = `
    select ${LISTED}, n.status, a.last from (${scanText(first, rest.length === 0 ? 101 : MOST_SCANNED)}) n
    left join lateral (
      select json_build_object(${ATTEMPT_JSON})::text as last from delivery_attempts a
      where a.notification_id = n.notification_id and a.finished_at is not null
      order by a.attempt_number desc limit 1) a on true
    where true ${rest.map((column, at) => `and n.${column} = $${6 + at}`).join(' ')}
    order by ${newestFirst(first)} limit $${parameters.length + 1}`;
  return { text, parameters, filters: filters.map(([, column]) => column) };
}

/** The columns of the index of a filter, or of none, as the scan names them. */
const keyOf = (filter: Column | undefined) => [
  'environment',
  'partner_id',
  ...(filter === undefined ? [] : [filter]),
  'notification_id',
];
const newestFirst = (filter: Column | undefined) =>
  keyOf(filter)
    .map((column) => `n.${column} desc`)
    .join(', ');

/**
 * What the index of a filter has in a range, in its order. The range is of whole keys, and the order names all of their columns,
 * though all but the last have one value only: no other index has that order, so no plan takes another and looks through it.
 * The bounds of the id leave months out; filters of NULL are in no index.
 */
function scanText(filter: Column | undefined, most: number): string {
  const key = keyOf(filter).map((column) => (column === 'status' ? `(${STATUS_SQL})` : column));
  const bound = (id: string) => (filter === undefined ? `($1, $2, ${id})` : `($1, $2, $5, ${id})`);
  return `
    select environment, partner_id, notification_id, event_id, event_type, ${STATUS_SQL} as status, end_reason,
      application_id, merchant_reference, sequence, attempts, next_attempt_at, paused_at, delivered_at
    from notifications
    where (${key.join(', ')}) >= ${bound('$3')} and (${key.join(', ')}) < ${bound('$4')}
      and notification_id >= $3 and notification_id < $4
      ${filter === undefined || filter === 'status' ? '' : `and ${filter} is not null`}
    order by ${key.map((column) => `${column} desc`).join(', ')} limit ${most}`;
}

/** The notification at which a page of several filters stopped looking; null when there were no more. */
async function lastScanned(
  reader: Reader,
  wanted: PageWanted,
  filter: Column | undefined,
): Promise<string | null> {
  const { parameters } = pageQuery(wanted);
  const text = `select n.notification_id as id from (${scanText(filter, MOST_SCANNED)}) n offset ${MOST_SCANNED - 1}`;
  const [row] = await runPrepared<{ id: string }>(reader, text, parameters.slice(0, 5));
  return row?.id ?? null;
}
