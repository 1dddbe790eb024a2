import { and, asc, desc, eq, inArray, isNotNull, lt, sql, type SQL } from 'drizzle-orm';
import type { ApplicationState } from '../../domain/application-states';
import type { DbOrTransaction } from '../postgres/connect';
import { creditApplications, lenderEvents } from '../schema';
import { given } from '../schema/columns';
import type { LenderEvent } from './apply-lender-events';
import type { KeyBinding } from '../keys/service-keys';
import { listStatusNotifications, type Application, type StatusNotification } from './notifications';

export type { Application } from './notifications';

/** An application with all that was said of it, and all that its partner was told. */
export interface ApplicationStory {
  readonly application: Application;
  /** In the order of arrival. */
  readonly events: readonly LenderEvent[];
  /** In their order. */
  readonly notifications: readonly StatusNotification[];
}

/** The applications that a service key may see; every one of a lender and environment. */
export function inScope({ lender, environment }: KeyBinding): SQL | undefined {
  return and(eq(creditApplications.lender, lender), eq(creditApplications.environment, environment));
}

export async function applicationExists(db: DbOrTransaction, applicationId: string): Promise<boolean> {
  const rows = await db
    .select({ one: sql`1` })
    .from(creditApplications)
    .where(eq(creditApplications.applicationId, applicationId));
  return rows.length > 0;
}

/**
 * Reads one application with its history.
 * @param scope what the service key that asks is bound to, or `all` for operators
 * @returns null when there is none in that scope
 */
export async function findApplication(
  db: DbOrTransaction,
  applicationId: string,
  scope: KeyBinding | 'all',
): Promise<ApplicationStory | null> {
  const [application] = await db
    .select()
    .from(creditApplications)
    .where(
      and(eq(creditApplications.applicationId, applicationId), scope === 'all' ? undefined : inScope(scope)),
    );
  if (application === undefined) return null;
  const events = await db
    .select()
    .from(lenderEvents)
    .where(eq(lenderEvents.applicationId, applicationId))
    .orderBy(asc(lenderEvents.eventNumber));
  return { application, events, notifications: await listStatusNotifications(db, applicationId) };
}

interface ApplicationFilter {
  readonly partnerId?: string | undefined;
  readonly environment?: Application['environment'] | undefined;
  readonly lender?: string | undefined;
  readonly lenderReference?: string | undefined;
  readonly merchantReference?: string | undefined;
  readonly quoteId?: string | undefined;
  readonly state?: ApplicationState | undefined;
  /** Those with a lender's event that waits. */
  readonly waiting?: boolean;
  /** How far back they were opened, in seconds. */
  readonly sinceSeconds: number;
  /** Only those older than this one: the next page. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** What waits in these applications, in the order of arrival. */
export async function listWaitingEvents(
  db: DbOrTransaction,
  applicationIds: readonly string[],
): Promise<LenderEvent[]> {
  if (applicationIds.length === 0) return [];
  return db
    .select()
    .from(lenderEvents)
    .where(and(inArray(lenderEvents.applicationId, [...applicationIds]), isNotNull(lenderEvents.waitsUntil)))
    .orderBy(asc(lenderEvents.eventNumber));
}

/** Applications, newest first. The span bounds what is read: ids sort by time. */
export async function listApplications(
  db: DbOrTransaction,
  filter: ApplicationFilter,
): Promise<Application[]> {
  const { sinceSeconds, after, limit, waiting = false, ...equal } = filter;
  const { applicationId } = creditApplications;
  const oldest = sql`'app_' || ulid_floor(service_now() - make_interval(secs => ${sinceSeconds}::float8))`;
  const columns = Object.keys(equal) as (keyof typeof equal)[];
  const withWaiting = sql`${applicationId} in (
    select application_id from lender_events where waits_until is not null)`;
  return db
    .select()
    .from(creditApplications)
    .where(
      and(
        sql`${applicationId} >= (select ${oldest})`,
        ...columns.map((column) => given(creditApplications[column], equal[column])),
        given(applicationId, after, lt),
        waiting ? withWaiting : undefined,
      ),
    )
    .orderBy(desc(applicationId))
    .limit(limit);
}
