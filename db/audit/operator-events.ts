import { and, desc, eq, gte, inArray, lt, sql, type SQL } from 'drizzle-orm';
import type { OperatorEventKind } from '../../domain/operator-event';
import type { DbOrTransaction } from '../postgres/connect';
import type { KeyEnvironment } from '../keys/key';
import { operatorEvents } from '../schema';

/** Something the service noticed by itself, as it is written down. */
export interface OperatorEvent {
  readonly kind: OperatorEventKind;
  /** Null, both: it is about no partner. */
  readonly partnerId: string | null;
  readonly environment: KeyEnvironment | null;
  /** Null when it is about notifications without an endpoint. */
  readonly endpointId: string | null;
  /** Figures and ids; never a secret, a body or an address. */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface RecordedEvent extends OperatorEvent {
  readonly eventId: number;
  readonly happenedAt: Date;
}

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
    /** Only those older than this one: the next page. */
    after?: number | undefined;
    limit: number;
  },
): Promise<RecordedEvent[]> {
  const { partnerId, environment, kinds, sinceSeconds, after, limit } = filter;
  const oldest = sql`service_now() - make_interval(secs => ${sinceSeconds}::float8)`;
  const conditions: SQL[] = [gte(operatorEvents.happenedAt, oldest)];
  if (partnerId !== undefined) conditions.push(eq(operatorEvents.partnerId, partnerId));
  if (environment !== undefined) conditions.push(eq(operatorEvents.environment, environment));
  if (kinds !== undefined) conditions.push(inArray(operatorEvents.kind, [...kinds]));
  if (after !== undefined) conditions.push(lt(operatorEvents.eventId, after));
  const rows = await db
    .select()
    .from(operatorEvents)
    .where(and(...conditions))
    .orderBy(desc(operatorEvents.eventId))
    .limit(limit);
  return rows.map((row) => ({ ...row, details: row.details as Record<string, unknown> }));
}
