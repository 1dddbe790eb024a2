import {
  claimDue,
  claimUnchecked,
  markStarted,
  repairsLoss,
  sweepQueues,
} from '../../../db/notifications/claim';
import type { DbOrTransaction } from '../../../db/postgres/connect';
import { useDatabase } from '../../support/database';

/** Rows of `deliveries` that a claim reads, whatever is stored. */
const database = useDatabase({ poolSize: 1, statementTimeoutMs: 60_000, byIndex: true });

async function fill(rows: number, endpoints: number, due: string): Promise<void> {
  // To truncate would have everything planned anew.
  await database.sql`delete from deliveries`;
  await database.sql`delete from notifications`;
  await database.sql`
    insert into notifications (notification_id, event_id, event_type, partner_id, environment, application_id, sequence, body)
    select 'ntf_' || left(ulid_floor(now()), 10) || lpad(g::text, 16, '0'), 'evt_' || g, 'credit_application.accepted',
      'P' || lpad(endpoint::text, 6, '0'), 'live', 'app_' || endpoint || '_' || nth / 2, 1 + nth % 2, '{}'
    from generate_series(0, ${rows}::int - 1) g,
      lateral (select g % ${endpoints}::int as endpoint, g / ${endpoints}::int as nth) of`;
  await database.sql`
    insert into deliveries (notification_id, partner_id, environment, application_id, sequence, test, due_at)
    select notification_id, partner_id, environment, application_id, sequence, false, service_now() + ${due}::interval
    from notifications`;
  // A tenth more are tests of other endpoints that wait for a retry.
  await database.sql`
    with tests as (
      insert into notifications (notification_id, event_id, event_type, partner_id, environment, body)
      select 'ntf_' || left(ulid_floor(now()), 10) || 'R' || lpad(g::text, 15, '0'), 'evt_R' || g, 'webhook.test',
        'P' || lpad((900000 + g)::text, 6, '0'), 'live', '{}'
      from generate_series(1, ${rows}::int / 10) g returning *)
    insert into deliveries (notification_id, partner_id, environment, test, state, started_at, step)
    select notification_id, partner_id, environment, true, 'started', service_now(), 1 from tests`;
}

/** Rows that were read by indexes, and without one: of the session, since it reported them last. */
async function counters(tx: DbOrTransaction): Promise<{ byIndex: number; without: number }> {
  const [row] = await tx.execute<{ byIndex: number; without: number }>(`
    select idx_tup_fetch::int as "byIndex", seq_tup_read::int as without
    from pg_stat_xact_user_tables where relname = 'deliveries'`);
  return row ?? { byIndex: Number.NaN, without: Number.NaN };
}

/** What a claim of the queues that a sweep finds took, and how many rows each read by indexes, and both without one. */
async function read(): Promise<{ taken: number; swept: number; claimed: number; without: number }> {
  return database.db.transaction(async (tx) => {
    const before = await counters(tx);
    const { due } = await sweepQueues(tx, '');
    const between = await counters(tx);
    const queues = due.length === 0 ? ['P000000/live'] : due.map(({ queue }) => queue).slice(0, 64);
    const of = { limit: 64, slotsOf: () => 16, leaseMs: 10_000, graceMs: 0, queues };
    const taken = (await claimDue(tx, of)).claimed.length;
    const after = await counters(tx);
    return {
      taken,
      swept: between.byIndex - before.byIndex,
      claimed: after.byIndex - between.byIndex,
      without: after.without - before.without,
    };
  });
}

/** How many rows are read to note that a delivery was started. */
async function readNoting(): Promise<{ byIndex: number; without: number }> {
  return database.db.transaction(async (tx) => {
    const before = await counters(tx);
    const [one] = await tx.execute<{ id: string }>(
      'select notification_id as id from deliveries order by 1 limit 1',
    );
    await markStarted(tx, [{ notificationId: one?.id ?? 'none', generation: 1 }]);
    const after = await counters(tx);
    return { byIndex: after.byIndex - before.byIndex, without: after.without - before.without };
  });
}

/** What the reconciler claims of started ones, and how many rows it reads. */
async function readStarted(): Promise<{ claimed: number; byIndex: number; without: number }> {
  return database.db.transaction(async (tx) => {
    const before = await counters(tx);
    await repairsLoss(tx);
    const { length: claimed } = await claimUnchecked(tx, { limit: 50, olderThanMs: 60_000 });
    const after = await counters(tx);
    return { claimed, byIndex: after.byIndex - before.byIndex, without: after.without - before.without };
  });
}

// As a worker that has been started long before: it has claimed from the empty table, and keeps those plans.
beforeAll(async () => {
  for (let times = 0; times < 8; times += 1) {
    expect(await read()).toMatchObject({ taken: 0, without: 0 });
    expect(await readStarted()).toMatchObject({ claimed: 0, without: 0 });
    await readNoting();
  }
});

test.each([
  [1_000, 1, '-1 s', 16, 1_000, 200],
  // The newest 2,000 that are due, and a row of the one queue.
  [5_000, 1, '-1 s', 16, 2_010, 200],
  [5_000, 1, '1 hour', 0, 1, 0],
  // The same, and a row of each queue.
  [5_000, 500, '-1 s', 64, 2_510, 600],
  [1_000, 1_000, '-1 s', 64, 1_000, 400],
  [5_000, 500, '1 hour', 0, 1, 0],
])(
  'of %i rows of %i endpoints, due in %s, a claim takes %i; the sweep reads at most %i, the claim %i',
  async (rows, endpoints, due, taken, mostSwept, mostClaimed) => {
    await fill(rows, endpoints, due);
    const first = await read();
    expect(first).toMatchObject({ taken, without: 0 });
    expect(first.swept).toBeLessThanOrEqual(mostSwept);
    expect(first.claimed).toBeLessThanOrEqual(mostClaimed);
    if (endpoints === 1) expect((await read()).claimed).toBeLessThanOrEqual(40);
  },
  15_000,
);

test('a paused partner with 5,000 due notifications costs a claim nothing', async () => {
  await fill(5_000, 1, '-1 s');
  await database.sql`insert into partners (partner_id, name) values ('P000000', 'Paused')`;
  await database.sql`insert into delivery_pauses (partner_id, environment, paused_by) values ('P000000', 'live', 'jane')`;
  for (let times = 0; times < 3; times += 1) {
    const claim = await read();
    expect(claim).toMatchObject({ taken: 0, without: 0 });
    expect(claim.claimed).toBe(0);
  }
});

test('to note one of 5,000 as started reads few', async () => {
  await fill(5_000, 500, '-1 s');
  const { byIndex, without } = await readNoting();
  expect(without).toBe(0);
  expect(byIndex).toBeLessThanOrEqual(10);
});

test('of 5,000 started ones that were checked within the minute the reconciler reads those of which an order was not read', async () => {
  await fill(5_000, 500, '1 hour');
  await database.sql`
    update deliveries set state = 'started', started_at = service_now() - interval '1 hour', checked_at = service_now() - interval '40 s'`;
  await database.sql`
    update deliveries set ordered_at = service_now() - interval '35 s'
    where notification_id in (select notification_id from deliveries order by 1 limit 5)`;
  const first = await readStarted();
  expect(first).toMatchObject({ claimed: 5, without: 0 });
  expect(first.byIndex).toBeLessThanOrEqual(20);
  // The others, a minute after they were.
  await database.sql`update deliveries set checked_at = service_now() - interval '61 s'`;
  const all = await readStarted();
  expect(all).toMatchObject({ claimed: 50, without: 0 });
  expect(all.byIndex).toBeLessThanOrEqual(220);
});
