import { and, desc, gte, inArray, sql } from 'drizzle-orm';
import type { OperatorEventKind } from '../../domain/operator-event';
import type { DbOrTransaction } from '../postgres/connect';
import type { KeyEnvironment } from '../keys/key';
import { operatorEvents } from '../schema';
import { given } from '../schema/columns';

export type RecordedEvent = Readonly<typeof operatorEvents.$inferSelect>;
/** Something the service noticed by itself, as it is written down. */
export type OperatorEvent = Omit<RecordedEvent, 'eventId' | 'happenedAt'>;

/** Writes down what operators should know. Call it in the transaction that it is about. */
export async function appendOperatorEvents(
  tx: DbOrTransaction,
  events: readonly OperatorEvent[],
): Promise<void> {
  if (events.length > 0) await tx.insert(operatorEvents).values([...events]);
}

/** Events, newest first. @param filter.sinceSeconds how far back, in seconds. */
export async function listOperatorEvents(
  db: DbOrTransaction,
  filter: {
    partnerId?: string | undefined;
    environment?: KeyEnvironment | undefined;
    kinds?: readonly OperatorEventKind[] | undefined;
    sinceSeconds: number;
    limit: number;
  },
): Promise<RecordedEvent[]> {
  const { kinds, sinceSeconds, limit } = filter;
  const { partnerId, environment, kind, happenedAt } = operatorEvents;
  return db
    .select()
    .from(operatorEvents)
    .where(
      and(
        gte(happenedAt, sql`service_now() - make_interval(secs => ${sinceSeconds}::float8)`),
        given(partnerId, filter.partnerId),
        given(environment, filter.environment),
        kinds && inArray(kind, [...kinds]),
      ),
    )
    .orderBy(desc(operatorEvents.eventId))
    .limit(limit);
}
