import type { NotificationStatus } from '../../domain/notification-states';
import type { Tenant } from '../../domain/tenant';
import { firstRow, msText as ms, oneRow, runPrepared } from '../postgres/connect';
import type { Parameter, Reader } from '../postgres/connect';
import { deliveryStatus, endedStatus } from '../schema';
import { createdMs, lowestNotificationId, type Notification } from './notification';
import type { DeliveryAttempt } from './operator';

type Result = 'outcome' | 'httpStatus' | 'failure' | 'durationMs';
/** An attempt as partners see it. Moments in Unix milliseconds. */
export type ListedAttempt = Pick<DeliveryAttempt, Result> & { readonly atMs: number };

/** A notification as partners see it in a list. Moments in Unix milliseconds. */
export interface Listed extends Omit<
  Notification,
  'generation' | 'partnerId' | 'environment' | 'state' | 'hasBody'
> {
  readonly merchantReference: string | null;
  readonly status: NotificationStatus;
  readonly lastAttempt: ListedAttempt | null;
  readonly nextAttemptMs: number | null;
}

// The status of a notification `n` joined with its delivery `d`.
const STATUS = `case when d.notification_id is null then ${endedStatus('n.')} else ${deliveryStatus('d.')} end`;

// Columns of a Listed, and the fields of an attempt `a`.
const LISTED = `n.notification_id as "notificationId", n.event_id as "eventId", n.event_type as "eventType",
  coalesce(d.hold_reason, n.end_reason) as "endReason", n.application_id as "applicationId",
  n.merchant_reference as "merchantReference", n.sequence, coalesce(d.attempts, n.attempts) as attempts,
  ${ms('case when d.paused_at is null and not deliveries_paused_1(n.partner_id, n.environment) then d.next_attempt_at end')} as "nextAttemptMs",
  ${ms('n.delivered_at')} as "deliveredMs", ${STATUS} as status`;
// A fault of our own network is none of the partner's endpoint.
const ATTEMPT_JSON = `'atMs', ${ms('a.started_at')}, 'outcome', case a.outcome when 'ours' then 'unknown' else a.outcome end,
  'httpStatus', a.http_status, 'failure', case when a.outcome <> 'ours' then a.failure end, 'durationMs', a.duration_ms`;

/** Filters and their columns, the most selective first. Each has an index (db/schema). */
const FILTERS = [
  ['eventId', 'event_id'],
  ['applicationId', 'application_id'],
  ['merchantReference', 'merchant_reference'],
  ['status', 'status'],
  ['eventType', 'event_type'],
  // It needs no index, as it always comes with an application, which has few notifications.
  ['sequence', 'sequence'],
] as const;

type Column = (typeof FILTERS)[number][1];

/**
 * With several filters the index of the first is scanned for the others, up to this many notifications,
 * which takes some milliseconds. The page may then be short, and the next one begins where the scan
 * stopped.
 */
const MOST_SCANNED = 1_000;

/** Filters for which two months are likely to fill a page. */
const FILLS_PAGES: ReadonlySet<Column | undefined> = new Set([undefined, 'status', 'event_type']);

export interface PageWanted
  extends Tenant, Partial<Record<'eventId' | 'applicationId' | 'merchantReference' | 'eventType', string>> {
  readonly status?: NotificationStatus;
  readonly sequence?: number;
  /** Ids from the first, inclusive, to the second, exclusive. */
  readonly fromId: string;
  readonly beforeId: string;
  /** 1 to 100. */
  readonly limit: number;
}

export interface Page {
  readonly notifications: readonly Listed[];
  /** The next page has ids before this one. Null at the end. */
  readonly next: string | null;
}

/**
 * A page of a partner's notifications, newest first. A statement opens every month of its span, which
 * costs more than the rows of a page. So the span is narrowed first: to the months of what is under
 * way, which `deliveries` knows, or to two months, which nearly always fill the page.
 */
export async function listForPartner(reader: Reader, wanted: PageWanted): Promise<Page> {
  const first = FILTERS.find(([name]) => wanted[name] !== undefined)?.[1];
  if (first === 'status' && IN_DELIVERIES.includes(wanted.status)) return listUnderWay(reader, wanted);
  const fromId = startOfMonthBefore(wanted.beforeId);
  if (FILLS_PAGES.has(first) && fromId > wanted.fromId) {
    const page = await readPage(reader, { ...wanted, fromId });
    if (page.next !== null) return page;
  }
  return readPage(reader, wanted);
}

/** The first id of the month before that of an id, or before the present one. */
function startOfMonthBefore(id: string): string {
  const at = new Date(Math.min(Date.now(), createdMs(id)));
  return lowestNotificationId(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() - 1));
}

async function listUnderWay(reader: Reader, wanted: PageWanted): Promise<Page> {
  const { parameters, scan, filters } = pageQuery(wanted);
  const most = filters < 2 ? wanted.limit + 1 : MOST_SCANNED;
  const span = await oneRow<{ count: number; first: string | null; last: string }>(
    reader,
    `select count(*)::int, min(notification_id) as first, max(notification_id) as last from (select * from (${scan}) s limit $6) s`,
    [...parameters.slice(0, 5), most],
  );
  if (span.first === null) return { notifications: [], next: null };
  const page = await readPage(reader, { ...wanted, fromId: span.first, beforeId: `${span.last}~` });
  // A notification that ended between the two statements does not end the list.
  return { ...page, next: page.next ?? (span.count === most ? span.first : null) };
}

/** Reads one notification more than it returns; with several filters at most MOST_SCANNED. */
async function readPage(reader: Reader, wanted: PageWanted): Promise<Page> {
  const { limit } = wanted;
  const { text, parameters, scan, filters } = pageQuery(wanted);
  const rows = await runPrepared<Listed>(reader, text, [...parameters, limit + 1]);
  const notifications = rows.slice(0, limit);
  if (rows.length > limit) return { notifications, next: notifications.at(-1)?.notificationId ?? null };
  if (filters < 2) return { notifications, next: null };
  // The notification at which the scan stopped; none when there were no more.
  const lastScanned = `select notification_id as id from (${scan}) s offset ${MOST_SCANNED - 1}`;
  const [row] = await runPrepared<{ id: string }>(reader, lastScanned, parameters.slice(0, 5));
  return { notifications, next: row?.id ?? null };
}

/** The statement of a page, whose last parameter is `limit` + 1. Exported for tests of its plan. */
function pageQuery(wanted: PageWanted) {
  const { environment, partnerId, fromId, beforeId, status } = wanted;
  const filters = FILTERS.filter(([name]) => wanted[name] !== undefined);
  const parameters: Parameter[] = [environment, partnerId, fromId, beforeId];
  parameters.push(...filters.map(([name]) => wanted[name] ?? null));
  const [first, ...rest] = filters.map(([, column]) => column);
  // The inner limit is a constant, so that the planner expects few rows. The scan stops at the outer one.
  const { scan, joined, order } = scanOf(first, status, rest.length === 0 ? 101 : MOST_SCANNED);
  const text = `
    select ${LISTED}, a."lastAttempt"
    from (${scan}) s ${joined}
    left join deliveries d on d.notification_id = s.notification_id
    left join lateral (
      select json_build_object(${ATTEMPT_JSON}) as "lastAttempt" from delivery_attempts a
      where a.notification_id = s.notification_id and a.notification_id >= $3 and a.notification_id < $4 and a.finished_at is not null
      order by a.attempt_number desc limit 1) a on true
    where true ${rest.map((column, at) => `and ${column === 'status' ? `(${STATUS})` : `n.${column}`} = $${6 + at}`).join(' ')}
    order by ${order.map((one) => `s.${one} desc`).join(', ')} limit $${parameters.length + 1}`;
  return { text, parameters, scan, filters: filters.length };
}

const IN_DELIVERIES: readonly (NotificationStatus | undefined)[] = ['pending', 'retrying', 'held'];

const given = (name: string | undefined) => (name === undefined ? [] : [name]);
const SCANNED =
  'event_id, event_type, application_id, merchant_reference, sequence, attempts, end_state, end_reason, delivered_at';

// A range of the index of a filter, in its order. The order names every column of the key, though all
// but the last have one value: only this index has that order, so the planner takes it. The bounds of
// the id exclude months; NULL is in no index of a filter.
function scanOf(filter: Column | undefined, status: NotificationStatus | undefined, most: number) {
  const underWay = filter === 'status' && IN_DELIVERIES.includes(status);
  const expression = filter === 'status' ? `(${underWay ? deliveryStatus() : endedStatus()})` : filter;
  const owner = underWay ? ['partner_id', 'environment'] : ['environment', 'partner_id'];
  const ordered = [...owner, ...given(expression), 'notification_id'];
  const key = ordered.join(', ');
  const values = [...(underWay ? ['$2', '$1'] : ['$1', '$2']), ...given(filter && '$5')].join(', ');
  const partial = underWay ? undefined : filter === 'status' ? 'end_state' : filter;
  const columns = ['notification_id', 'partner_id', 'environment', ...(underWay ? [] : [SCANNED])];
  return {
    scan: `
      select ${columns.join(', ')} ${filter === 'status' ? `, ${expression} as status` : ''}
      from ${underWay ? 'deliveries' : 'notifications'}
      where (${key}) >= (${values}, $3) and (${key}) < (${values}, $4)
        and notification_id >= $3 and notification_id < $4 ${partial === undefined ? '' : `and ${partial} is not null`}
      order by ${ordered.map((one) => `${one} desc`).join(', ')} limit ${most}`,
    joined: underWay
      ? 'join notifications n on n.notification_id = s.notification_id and n.notification_id >= $3 and n.notification_id < $4'
      : 'cross join lateral (select s.*) n',
    order: [...owner, ...given(filter), 'notification_id'],
  };
}

interface LoggedAttempt extends ListedAttempt {
  readonly number: number;
  readonly finishedMs: number | null;
}

export interface PartnerNotification extends Listed {
  /** The body as it is sent; empty once it has been removed. */
  readonly body: string;
  readonly log: readonly LoggedAttempt[];
}

/** Nine ladders. A partner may have a notification sent again as often as it likes. */
const MOST_ATTEMPTS = 100;

const FIND = `
  select ${LISTED}, n.body,
    (select coalesce(json_agg(json_build_object(${ATTEMPT_JSON}, 'number', a.attempt_number,
        'finishedMs', ${ms('a.finished_at')}) order by a.attempt_number), '[]')
      from (
        select attempt_number, started_at, finished_at, outcome, failure, http_status, duration_ms from delivery_attempts
        where notification_id = $1 order by attempt_number desc limit ${MOST_ATTEMPTS}) a) as log
  from notifications n left join deliveries d on d.notification_id = $1
  where n.notification_id = $1 and n.partner_id = $2 and n.environment = $3`;

/** Reads a notification of this partner and environment; null for all others. */
export async function findForPartner(reader: Reader, notificationId: string, of: Tenant) {
  type Row = Omit<PartnerNotification, 'lastAttempt'>;
  const row = await firstRow<Row>(reader, FIND, [notificationId, of.partnerId, of.environment]);
  return row && { ...row, lastAttempt: row.log.findLast(({ finishedMs }) => finishedMs !== null) ?? null };
}
