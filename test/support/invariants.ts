import type { Client } from '@temporalio/client';
import type { Database } from '../../db/postgres/connect';
import { grpcStatus } from '../../runtime/temporal/connect';
import { deliveryWorkflowId } from '../../workflows/names';
import { readable } from './emitted';
import { expectExactlyOne } from './exactly-one';
import { verifySignatures, type WebhookReceiver } from './webhook-receiver';

/** Everything that saw a fault run, to be asked once it is over. */
export interface Witnesses {
  readonly database: Database;
  readonly receiver: WebhookReceiver;
  readonly secrets: ReadonlyMap<string, string>;
  /** API keys, key rings: what may stand in no output and in no history, besides secrets and signatures. */
  readonly hidden: readonly string[];
  /** Workers killed: each leaves at most one attempt of a notification `unknown`. */
  readonly kills: number;
  readonly outputs: readonly string[];
  /** Whose histories are read. */
  readonly client: Client;
}

interface Row {
  readonly id: string;
  readonly eventId: string;
  readonly partnerId: string;
  readonly body: string;
  readonly state: string;
  readonly generation: number;
  readonly attempts: number;
  readonly unfinished: number;
  readonly unknown: number;
}

/** gRPC status. */
const NOT_FOUND = 5;
const TERMINAL = ['delivered', 'failed', 'cancelled', 'expired'];

/** Checks the invariants I1, I2, I3, I5, I8 and I9 over all that is in the database. */
export async function expectInvariants(witnesses: Witnesses): Promise<void> {
  const { database, receiver, outputs } = witnesses;
  const rows = await database.sql<Row[]>`
    select n.notification_id as id, event_id as "eventId", partner_id as "partnerId", body, state, n.generation,
      count(attempt_number)::int as attempts,
      (count(*) filter (where attempt_number is not null and finished_at is null))::int as unfinished,
      (count(*) filter (where outcome = 'unknown'))::int as unknown
    from notifications_now n left join delivery_attempts a on a.notification_id = n.notification_id
    group by n.notification_id, event_id, partner_id, body, state, n.generation order by 1`;
  // What compared nothing shows nothing.
  expect(rows.length).toBeGreaterThan(0);
  expect(receiver.received.length).toBeGreaterThan(0);
  expect(outputs.join('')).not.toBe('');
  const open = rows.filter(({ state, unfinished }) => !TERMINAL.includes(state) || unfinished > 0);
  expect({ invariant: 'I1: all have ended', open }).toMatchObject({ open: [] });
  await expectExactlyOne(database);
  await expectCounts(database);
  expectReceived(rows, witnesses);
  await expectSilence(rows, witnesses);
}

/** I2, I3: never more than a hundred, no place left over, each delivery counted once in one month. */
async function expectCounts(database: Database): Promise<void> {
  const over = await database.sql`select * from monthly_counts where delivered > 100 or reserved <> 0`;
  expect({ invariant: 'I2: within the limit', over: [...over] }).toMatchObject({ over: [] });
  expect({ invariant: 'I3: each counted once', miscounted: await miscounted(database) }).toMatchObject({
    miscounted: [],
  });
}

/** Where the counts differ from the notifications that they count; empty when I3 holds. */
export async function miscounted({ sql }: Database): Promise<unknown[]> {
  const found = await sql`
    select * from (
      select partner_id, environment, event_type, sum(delivered)::int as delivered, sum(failed)::int as failed
      from monthly_counts group by 1, 2, 3) c
    full join (
      select partner_id, environment, event_type, count(delivered_at)::int as delivered,
        count(failed_month)::int as failed
      from notifications_now group by 1, 2, 3) n using (partner_id, environment, event_type)
    where coalesce(c.delivered, 0) <> coalesce(n.delivered, 0) or coalesce(c.failed, 0) <> coalesce(n.failed, 0)`;
  return [...found];
}

/** I5, I9: what arrived is signed, the stored bytes, and stands in an attempt's row. */
function expectReceived(rows: readonly Row[], { receiver, secrets, kills }: Witnesses): void {
  const byEvent = new Map(rows.map((row) => [row.eventId, row]));
  const seen = new Map<string, number>();
  for (const request of receiver.received) {
    const { eventId } = request;
    const row = byEvent.get(eventId);
    if (row === undefined) throw new Error(`I5: ${eventId} was received, and nobody stored it`);
    verifySignatures(request, secrets.get(row.partnerId) ?? '');
    expect(request.body).toBe(row.body);
    seen.set(eventId, (seen.get(eventId) ?? 0) + 1);
  }
  const astray = rows.filter(({ eventId, attempts, unknown }) => {
    const arrived = seen.get(eventId) ?? 0;
    return arrived > attempts || attempts - arrived > unknown || unknown > kills;
  });
  expect({ invariant: 'I9: attempts as seen', astray }).toMatchObject({ astray: [] });
}

/** I8: no key, secret or signature in what the processes wrote, nor in what Temporal keeps; there not even the event. */
async function expectSilence(rows: readonly Row[], witnesses: Witnesses): Promise<void> {
  const { receiver, secrets, hidden, outputs, client } = witnesses;
  const secret = [...secrets.values(), ...hidden].flatMap((text) => [text, text.replace(/^\w+[_:]/, '')]);
  const signatures = receiver.received.flatMap(({ headers }) => [
    ...String(headers['webhook-signature'])
      .split(' ')
      .map((signature) => signature.replace(/^v1a?,/, '')),
    String(headers['service-signature']).replace(/^.*v1=/, ''),
  ]);
  const histories: string[] = [];
  for (const { id, generation } of rows)
    for (let each = 1; each <= generation; each += 1)
      histories.push(await historyOf(client, deliveryWorkflowId(id, each)));
  const told = [...outputs, ...histories].join('\n');
  const found = [...secret, ...signatures].filter((text) => told.includes(text));
  expect({ invariant: 'I8: nothing told', found }).toMatchObject({ found: [] });
  const kept = histories.join('\n');
  const events = rows.filter(({ eventId }) => kept.includes(eventId) || kept.includes(receiver.url));
  expect({ invariant: 'I8: ids only in Temporal', events }).toMatchObject({ events: [] });
}

/** Everything that Temporal keeps of a workflow, payloads decoded; nothing for one that it does not know. */
export async function historyOf(client: Client, workflowId: string): Promise<string> {
  try {
    const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
    return JSON.stringify(events, readable);
  } catch (error) {
    if (grpcStatus(error) === NOT_FOUND) return '';
    throw error;
  }
}
