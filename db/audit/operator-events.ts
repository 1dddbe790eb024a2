import { and, desc, inArray, lt, sql } from 'drizzle-orm';
import type { OperatorEventKind } from '../../domain/operator-event';
import type { DbOrTransaction } from '../postgres/connect';
import type { KeyEnvironment } from '../keys/key';
import { operatorEvents } from '../schema';
import { given, givenSince } from '../schema/columns';

/** An event as it is stored (db/schema/audit.ts). */
type RecordedEvent = Readonly<typeof operatorEvents.$inferSelect>;
/** Something the service noticed by itself, as it is written down; never with a secret, a body or an address. */
export type OperatorEvent = Omit<RecordedEvent, 'eventId' | 'happenedAt'>;

/** Writes down what operators should know. Call it in the transaction that it is about. */
export async function appendOperatorEvents(
  tx: DbOrTransaction,
  events: readonly OperatorEvent[],
): Promise<void> {
  if (events.length > 0) await tx.execute(insertion(events));
}

/** Writes down one of a kind that a unique index keeps to one for its subject. @returns false when it is there already. */
export async function appendOperatorEventOnce(db: DbOrTransaction, event: OperatorEvent): Promise<boolean> {
  return (await db.execute(sql`${insertion([event])} on conflict do nothing`)).count > 0;
}

/** Number and moment are given by Postgres. */
const insertion = (events: readonly OperatorEvent[]) => sql`
  insert into operator_events (kind, partner_id, environment, endpoint_id, details)
  select kind, "partnerId", environment, "endpointId", details
  from jsonb_to_recordset(${JSON.stringify(events)}::text::jsonb)
    as e (kind text, "partnerId" text, environment text, "endpointId" text, details jsonb)`;

/** Events, newest first. @param filter.sinceSeconds how far back, in seconds. */
export async function listOperatorEvents(
  db: DbOrTransaction,
  filter: {
    partnerId?: string | undefined;
    environment?: KeyEnvironment | undefined;
    kinds?: readonly OperatorEventKind[] | undefined;
    sinceSeconds: number;
    /** Only those older than this one: the next page. */
    after?: number | undefined;
    limit: number;
  },
): Promise<RecordedEvent[]> {
  const { eventId, happenedAt, kind, partnerId, environment } = operatorEvents;
  return db
    .select()
    .from(operatorEvents)
    .where(
      and(
        givenSince(happenedAt, filter.sinceSeconds),
        given(partnerId, filter.partnerId),
        given(environment, filter.environment),
        filter.kinds && inArray(kind, [...filter.kinds]),
        given(eventId, filter.after, lt),
      ),
    )
    .orderBy(desc(eventId))
    .limit(filter.limit);
}
