import { DELIVERY_SIGNALS, deliveryWorkflowId } from '../../workflows/names';
import { PARTNER_ID, type TestApi } from '../support/api';
import { startTestWorker, until, type TestWorker } from '../support/delivery';
import { storeStatus } from '../support/notifications';
import { randomTaskQueue, type TestTemporal } from '../support/temporal';
import type { Received, WebhookReceiver } from '../support/webhook-receiver';

export interface Sent {
  readonly notificationId: string;
  readonly eventId: string;
}

export interface SceneOptions {
  readonly databaseUrl: string;
  readonly temporal: TestTemporal;
  readonly receiver: WebhookReceiver;
  readonly keyRing: string;
}

/** Notifications that a partner refuses until it is told to take them, and workers whose ladder waits for hours. */
export function createScene({ databaseUrl, temporal, receiver, keyRing: keys }: SceneOptions) {
  const taskQueue = randomTaskQueue('backup');
  /** By their sequence, which stands in the body. */
  const refused = new Set<number>();
  const sequences = new Map<Sent, number>();
  receiver.behave((_nth, { body }) =>
    refused.has((JSON.parse(body) as { sequence: number }).sequence) ? 503 : 200,
  );

  /** Stores a notification; `refuse`: its attempts fail until `accept`. */
  async function store({ database }: TestApi, { refuse = false } = {}): Promise<Sent> {
    const sequence = 101 + sequences.size;
    if (refuse) refused.add(sequence);
    const sent = await storeStatus(database, { partnerId: PARTNER_ID, sequence });
    sequences.set(sent, sequence);
    return sent;
  }
  const handleOf = ({ notificationId }: Sent, generation = 1) =>
    temporal.env.client.workflow.getHandle(deliveryWorkflowId(notificationId, generation));
  return {
    store,
    handleOf,
    /** What the partner got of an event. */
    requests: ({ eventId }: Pick<Sent, 'eventId'>): Received[] =>
      receiver.received.filter(({ headers }) => headers['webhook-id'] === eventId),
    /** The partner takes it from now on, and it is tried at once. */
    async accept(sent: Sent, generation = 1): Promise<void> {
      refused.delete(sequences.get(sent) ?? 0);
      await handleOf(sent, generation).signal(DELIVERY_SIGNALS.retryNow);
    },
    /** Waits until the workflow of this generation waits for its next attempt. */
    async waiting({ database }: TestApi, { notificationId }: Sent, generation: number): Promise<void> {
      const there = async () => {
        const found = await database.sql`
          select 1 from deliveries where notification_id = ${notificationId} and state = 'started' and generation = ${generation}
            and taken_at is null and next_attempt_at > service_now()`;
        return found.length > 0;
      };
      await until(there, `generation ${generation} of ${notificationId} waits`, 30_000);
    },
    /** Waits until a row looks like this and no attempt is under way. */
    async settled({ database }: TestApi, { notificationId }: Sent, row: { state: string; attempts: number }) {
      const there = async () => {
        const found = await database.sql`
          select 1 from notifications_now n where notification_id = ${notificationId} and state = ${row.state}
            and attempts = ${row.attempts} and not exists (select from delivery_attempts a
              where a.notification_id = n.notification_id and a.finished_at is null)`;
        return found.length > 0;
      };
      await until(there, `${notificationId} is ${row.state} after ${row.attempts} attempts`, 30_000);
    },
    async startWorker(): Promise<TestWorker> {
      const environment = { DELIVERY_LADDER_SECONDS: '0,3600,3600', RECONCILE_AFTER_MS: '1000' };
      const one = await startTestWorker({ databaseUrl, temporal, taskQueue, receiver, keys, environment });
      await one.ready();
      return one;
    },
  };
}

/** The months of every table, and how many rows lie in each. */
export async function partitionsOf({ sql }: TestApi['database']): Promise<string[]> {
  const parts = await sql<{ name: string; bound: string }[]>`
    select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
    from pg_inherits i join pg_class c on c.oid = i.inhrelid where c.relkind = 'r' order by 1`;
  const described: string[] = [];
  for (const { name, bound } of parts) {
    const [row] = await sql`select count(*)::int as rows from ${sql(name)}`;
    described.push(`${name} ${bound}: ${String(row?.['rows'])}`);
  }
  return described;
}
