import { and, asc, desc, eq, inArray, lt, sql } from 'drizzle-orm';
import type { OperatorEventKind } from '../../domain/operator-event';
import type { Tenant } from '../../domain/tenant';
import { runPrepared, type DbOrTransaction, type Reader } from '../postgres/connect';
import { operatorEvents } from '../schema';
import { given, within, type Within } from '../schema/columns';

type RecordedEvent = Readonly<typeof operatorEvents.$inferSelect>;
/** Something that the service has noticed, without secrets, bodies and addresses. */
export type OperatorEvent = Omit<RecordedEvent, 'eventId' | 'happenedAt'>;

const insertion = (events: readonly OperatorEvent[]) => sql`
  insert into operator_events (kind, partner_id, environment, endpoint_id, details)
  select kind, "partnerId", environment, "endpointId", details
  from jsonb_to_recordset(${JSON.stringify(events)}::text::jsonb)
    as e (kind text, "partnerId" text, environment text, "endpointId" text, details jsonb)`;

export async function appendOperatorEvents(tx: DbOrTransaction, events: readonly OperatorEvent[]) {
  if (events.length > 0) await tx.execute(insertion(events));
}

/**
 * Writes an event that a unique index allows once for its subject.
 * @returns false when there is one already
 */
export async function appendOperatorEventOnce(db: DbOrTransaction, event: OperatorEvent): Promise<boolean> {
  return (await db.execute(sql`${insertion([event])} on conflict do nothing`)).count > 0;
}

export async function listOperatorEvents(
  db: DbOrTransaction,
  filter: Within & Partial<Tenant> & { kinds?: readonly OperatorEventKind[]; after?: number; limit: number },
): Promise<RecordedEvent[]> {
  const { eventId, happenedAt, kind, partnerId, environment } = operatorEvents;
  return db
    .select()
    .from(operatorEvents)
    .where(
      and(
        within(happenedAt, filter),
        given(partnerId, filter.partnerId),
        given(environment, filter.environment),
        filter.kinds && inArray(kind, [...filter.kinds]),
        given(eventId, filter.after, lt),
      ),
    )
    .orderBy(desc(eventId))
    .limit(filter.limit);
}

/** How many times a lender contradicted the state of an application in the last 24 hours. */
interface Contradictions {
  readonly lender: string;
  readonly environment: 'sandbox' | 'live';
  readonly count: number;
}

const CONTRADICTIONS = `
  select l.lender, e.environment, count(o.event_id)::int as count
  from lenders l cross join unnest(array['sandbox', 'live']) e (environment) left join operator_events o
    on o.kind = 'lender_contradiction' and o.happened_at > service_now() - interval '24 hours'
      and o.details ->> 'lender' = l.lender and o.environment = e.environment
  group by 1, 2 order by count desc, 1, 2`;

/** Of every lender in both environments, 0 too. */
export const contradictionsOfDay = (reader: Reader) => runPrepared<Contradictions>(reader, CONTRADICTIONS);

/** What was noticed about an application, oldest first. */
export async function operatorEventsOf(
  db: DbOrTransaction,
  { applicationId, partnerId, environment }: { readonly applicationId: string } & Tenant,
): Promise<RecordedEvent[]> {
  const { eventId, kind, partnerId: partner, environment: of, details } = operatorEvents;
  const about = ['lender_contradiction', 'lender_steps_missing'] as const;
  return db
    .select()
    .from(operatorEvents)
    .where(
      and(
        eq(partner, partnerId),
        eq(of, environment),
        inArray(kind, [...about]),
        sql`${details} ->> 'application_id' = ${applicationId}`,
      ),
    )
    .orderBy(asc(eventId));
}
