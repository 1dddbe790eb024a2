import { and, asc, desc, eq, inArray, isNotNull, lt, sql } from 'drizzle-orm';
import type { ApplicationState } from '../../domain/application-states';
import type { Tenant } from '../../domain/tenant';
import { inScope, type KeyBinding } from '../service-keys';
import type { NotificationSummary } from '../notifications/operator';
import { columns, firstRow, msText, rowsOf, runPrepared } from '../postgres/connect';
import type { DbOrTransaction, Reader } from '../postgres/connect';
import { creditApplications, lenderEvents } from '../schema';
import { given, idWithin, type Within } from '../schema/columns';

export type Application = typeof creditApplications.$inferSelect;
export type LenderEvent = typeof lenderEvents.$inferSelect;

export type ApplicationHistory = NonNullable<Awaited<ReturnType<typeof findApplication>>>;

type StatusNotification = Pick<NotificationSummary, 'notificationId' | 'eventId' | 'eventType' | 'sequence'> &
  Pick<NotificationSummary, 'state' | 'endReason' | 'createdAt' | 'deliveredAt'>;

// Compared with the parameter, as the other table's column has another collation than the index.
const NOTIFICATIONS = `
  select ${columns('n', 'notification_id, event_id, event_type, sequence, state, end_reason, created_at, delivered_at')}
  from credit_applications a
  join notifications_now n on n.application_id = $1 and n.partner_id = a.partner_id and n.environment = a.environment
  where a.application_id = $1 order by n.sequence`;

export async function applicationExists(db: DbOrTransaction, applicationId: string): Promise<boolean> {
  const text = 'select 1 from credit_applications where application_id = $1';
  return (await runPrepared(db, text, [applicationId])).length > 0;
}

/**
 * An application with its history, without notifications of dropped months; null outside the scope.
 * @param scope of the service key that asks
 */
export async function findApplication(db: DbOrTransaction, applicationId: string, scope: KeyBinding | 'all') {
  // The scope is not in the statement: planned before Postgres has counted the rows, it would read the index of the lender's references.
  const [application] = await db
    .select()
    .from(creditApplications)
    .where(eq(creditApplications.applicationId, applicationId));
  if (application === undefined || (scope !== 'all' && !inScope(application, scope))) return null;
  const events = await db
    .select()
    .from(lenderEvents)
    .where(eq(lenderEvents.applicationId, applicationId))
    .orderBy(asc(lenderEvents.eventNumber));
  const notifications = await rowsOf<StatusNotification>(db, NOTIFICATIONS, [applicationId]);
  return { application, events, notifications };
}

type FilteredColumn = 'lender' | 'lenderReference' | 'merchantReference' | 'quoteId';

interface ApplicationFilter extends Within, Partial<Tenant & Record<FilteredColumn, string>> {
  readonly states?: readonly ApplicationState[];
  readonly waiting?: boolean;
  readonly after?: string;
  readonly limit: number;
}

export async function listApplications(db: DbOrTransaction, filter: ApplicationFilter) {
  const { since, until, after, limit, waiting = false, states, ...equal } = filter;
  const { applicationId } = creditApplications;
  const filters = Object.keys(equal) as (keyof typeof equal)[];
  const withWaiting = sql`${applicationId} in (
    select application_id from lender_events where waits_until is not null)`;
  return db
    .select()
    .from(creditApplications)
    .where(
      and(
        idWithin(applicationId, 'app_', { since, until }),
        ...filters.map((column) => given(creditApplications[column], equal[column])),
        given(applicationId, after, lt),
        states && inArray(creditApplications.state, [...states]),
        waiting ? withWaiting : undefined,
      ),
    )
    .orderBy(desc(applicationId))
    .limit(limit);
}

export async function listWaitingEvents(db: DbOrTransaction, applicationIds: readonly string[]) {
  return db
    .select()
    .from(lenderEvents)
    .where(and(inArray(lenderEvents.applicationId, [...applicationIds]), isNotNull(lenderEvents.waitsUntil)))
    .orderBy(asc(lenderEvents.eventNumber));
}

interface PartnerEvent {
  readonly sequence: number;
  readonly eventId: string;
  readonly notificationId: string;
  readonly eventType: string;
  readonly previousStatus: ApplicationState | null;
  readonly occurredMs: number;
}

type Shown = 'quoteId' | 'merchantReference' | 'merchantId' | 'lender' | 'lenderReference' | 'creditProduct';
export interface PartnerApplication extends Pick<Application, 'applicationId' | 'state' | Shown> {
  readonly createdMs: number;
  readonly updatedMs: number;
  /** In order. Those whose month has been dropped are missing. */
  readonly events: readonly PartnerEvent[];
}

// One statement, so that state and events are of one moment. The opening has no lender event.
const FIND_FOR_PARTNER = `
  select ${columns('p', 'application_id, quote_id, merchant_reference, merchant_id, lender, lender_reference, state, credit_product')},
    ${msText('p.created_at')} as "createdMs", ${msText('p.updated_at')} as "updatedMs",
    (select coalesce(json_agg(json_build_object('sequence', n.sequence, 'eventId', n.event_id, 'notificationId', n.notification_id, 'eventType', n.event_type,
        'previousStatus', e.previous_state, 'occurredMs', ${msText('coalesce(e.occurred_at, p.created_at)')})
        order by n.sequence), '[]')
      from notifications n
      left join lender_events e on e.application_id = $1 and e.sequence = n.sequence
      where n.application_id = $1 and n.partner_id = p.partner_id and n.environment = p.environment) as events
  from credit_applications p
  where p.application_id = $1 and p.partner_id = $2 and p.environment = $3`;

/** Reads an application of this partner and environment with its events; null for all others. */
export const findApplicationForPartner = (reader: Reader, applicationId: string, of: Tenant) =>
  firstRow<PartnerApplication>(reader, FIND_FOR_PARTNER, [applicationId, of.partnerId, of.environment]);
