import { NOTIFICATION_STATES } from '../../domain/notification-states';
import { endNotification, keepAnswer, recordAttempt } from '../../db/notifications/attempt';
import { newPartner, openedAttempt, putInState, storeTest } from '../../testbed/notifications';
import { storeRow } from '../support/partner-events';
import { FAILED } from '../../testbed/values';
import { unreachable, useOps } from './run';

const ops = useOps();
let partnerId = '';

// A partner of its own for each test.
beforeEach(async () => {
  ({ partnerId } = await newPartner(ops.database, ops.webhookKeys ?? ''));
  ops.orders.length = 0;
  ops.onOrder = async () => true;
});

const stored = async () => (await storeTest(ops.database, { partnerId })).notificationId;

async function attempted(
  notificationId: string,
  end: { state: 'failed'; reason: string } | null = null,
): Promise<string> {
  const opened = await openedAttempt(ops.database, { notificationId, generation: 1 });
  const outcome = { ...FAILED, durationMs: 35, retryAfterMs: 120_000 };
  await recordAttempt(ops.database.db, opened, { outcome, address: '192.0.2.1' });
  if (end !== null) await endNotification(ops.database.db, opened, end);
  await keepAnswer(ops.database.db, opened, 'Oh no.\u001b[2J\u009b2J\nSecond\u202E line\u{E0041}');
  return notificationId;
}

const stateOf = async (notificationId: string) =>
  (await ops.json('notifications show', notificationId)).state as string;

test('lists by partner, environment, state and age, newest first', async () => {
  for (const [at, state] of ([...NOTIFICATION_STATES, 'failed'] as const).entries()) {
    const daysAgo = at + 1;
    const id = await storeRow(ops.database, {
      partnerId,
      environment: daysAgo % 2 === 0 ? 'live' : 'sandbox',
      eventId: `evt_${daysAgo}`,
      at: new Date(Date.now() - daysAgo * 86_400_000),
      state,
    });
    if (daysAgo === 8)
      await ops.database.sql`update notifications set delivered_at = now() where notification_id = ${id}`;
  }
  const list = async (...more: string[]) =>
    (await ops.column('event_id', 'notifications list --partner', partnerId, ...more)).map((id) =>
      Number(id.slice(4)),
    );
  expect(await list()).toEqual([1, 2, 3, 4, 5, 6]);
  expect(await list('--since', '9d')).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(await list('--since', '9d', '--limit', '2')).toEqual([1, 2]);
  const [, second] = await ops.column('notification_id', 'notifications list --partner', partnerId);
  expect(await list('--since', '9d', '--limit', '2', '--after', second)).toEqual([3, 4]);
  expect(await list('--environment', 'live')).toEqual([2, 4, 6]);
  expect(await list('--since', '9d', '--state', 'failed,held')).toEqual([3, 5, 8]);
  expect(await list('--since', '9d', '--state', 'failed', '--state', 'held', '--until', '4d')).toEqual([
    5, 8,
  ]);
  // Not what was cancelled, nor what was delivered before a second send of it failed.
  expect(await list('--since', '9d', '--undelivered')).toEqual([1, 2, 3, 5, 7]);
});

test('shows the facts and every attempt, and lets no answer move the cursor', async () => {
  const id = await attempted(await stored(), { state: 'failed', reason: 'exhausted' });
  const story = `http://temporal.example/namespaces/quotes/workflows/notification%2F${id}%2F1`;
  expect(await ops.json('notifications show', id)).toMatchObject({
    story,
    state: 'failed',
    end_reason: 'exhausted',
    attempts: 1,
    delivery_attempts: [
      {
        attempt_number: 1,
        http_status: 503,
        duration_ms: 35,
        failure: 'http_status',
        address: '192.0.2.1',
        answer: 'Oh no.\u001b[2J\u009b2J\nSecond\u202E line\u{E0041}',
      },
    ],
  });
  const listed = await ops.json('notifications list --partner', partnerId);
  expect(listed).toContainEqual(expect.objectContaining({ notification_id: id, story }));
  const human = await ops.run(['notifications show', id]);
  const answer = '  | Oh no.\uFFFD[2J\uFFFD2J\n  | Second\uFFFD line\uFFFD';
  for (const told of [story, 'exhausted', '192.0.2.1', '120 s', answer]) expect(human.out).toContain(told);
  const scripted = await ops.run(['notifications show', id, '--json']);
  for (const { out } of [human, scripted]) expect(out).not.toMatch(/[\u001b\u0080-\u009f]|\p{Cf}/u);
});

const row = async (id: string) =>
  (
    await ops.database.sql`
      select paused_at is not null as paused, paused_by, hurried_at is not null as hurried, ordered_at is not null as ordered
      from deliveries where notification_id = ${id}`
  )[0];
const NO_ORDER = { paused: false, paused_by: null, hurried: false, ordered: false };

describe('orders to a delivery under way', () => {
  test.each([
    ['retry-now', 'retry_now', { hurried: true }],
    ['pause', 'pause', { paused: true, paused_by: 'tester' }],
    ['resume', 'resume', {}],
  ])(
    '%s changes the row, is logged with it, and wakes the workflow after that',
    async (verb, order, change) => {
      const id = await attempted(await stored());
      let seen: unknown;
      ops.onOrder = async () => {
        // Another connection sees the change, so it is committed.
        seen = await row(id);
        return true;
      };
      expect(await ops.json('notifications', verb, id)).toEqual({
        notification_id: id,
        generation: 1,
        order,
      });
      expect(ops.orders).toEqual([{ notificationId: id, generation: 1, order: 'wake' }]);
      expect(seen).toEqual({ ...NO_ORDER, ordered: true, ...change });
      expect(await ops.actionsOn(id)).toEqual([`notifications.${verb}`]);
    },
  );

  test('cancel goes to its workflow and is logged', async () => {
    const id = await attempted(await stored());
    const cancel = { notification_id: id, generation: 1, order: 'cancel' };
    expect(await ops.json('notifications cancel', id)).toEqual(cancel);
    expect(ops.orders).toEqual([{ notificationId: id, generation: 1, order: 'cancel' }]);
    expect(await ops.actionsOn(id)).toEqual(['notifications.cancel']);
  });

  test.each(['retry-now', 'pause', 'resume'])(
    'when the commit of %s fails, nothing is ordered, and no workflow is woken',
    async (verb) => {
      const id = await attempted(await stored());
      await ops.json('notifications', 'pause', id);
      const before = await row(id);
      ops.orders.length = 0;
      const { sql } = ops.database;
      await sql`
        create function fail_commit() returns trigger language plpgsql as $$ begin raise exception 'no commit'; end $$`;
      await sql`
        create constraint trigger fail_commit after insert on change_log deferrable initially deferred
        for each row execute function fail_commit()`;
      await ops.refuses(1, 'no commit', 'notifications', verb, id);
      await ops.refuses(1, 'no commit', 'notifications resume --partner', partnerId, '--yes');
      await sql`drop function fail_commit cascade`;
      expect(await row(id)).toEqual(before);
      expect(ops.orders).toEqual([]);
      // What is paused is found, and can be resumed.
      const paused = await ops.column('notification_id', 'notifications list --paused --partner', partnerId);
      expect(paused).toEqual([id]);
      const resumed = await ops.json('notifications resume --partner', partnerId, '--yes');
      expect(resumed).toMatchObject({ found: 1, given: 1 });
      expect(await row(id)).toMatchObject({ paused: false });
    },
  );

  test('stand when Temporal is away, as the row has them; cancel ends with 3 and is not logged', async () => {
    const id = await attempted(await stored());
    ops.onOrder = unreachable;
    const away =
      'Temporal cannot be reached at 192.0.2.9:7233 [(]no answer within 3 s[)]: check TEMPORAL_ADDRESS.';
    expect(await ops.text('notifications pause', id)).toMatch(
      new RegExp(`${away} The order counts within 90 s after it is back.`),
    );
    expect(await row(id)).toMatchObject({ paused: true, ordered: true });
    await ops.refuses(3, away, 'notifications cancel', id);
    expect(await ops.actionsOn(id)).toEqual(['notifications.pause']);
    expect(await stateOf(id)).toBe('started');
  });

  test('cancel ends the row itself when there is no workflow', async () => {
    const id = await attempted(await stored());
    ops.onOrder = async () => false;
    expect(await ops.json('notifications cancel', id)).toMatchObject({ state: 'cancelled' });
    expect(await stateOf(id)).toBe('cancelled');
    expect(await ops.actionsOn(id)).toEqual(['notifications.cancel']);
  });

  test('cancel leaves alone what was started anew meanwhile', async () => {
    const id = await attempted(await stored());
    ops.onOrder = async () => {
      await ops.database.sql`update deliveries set generation = 2 where notification_id = ${id}`;
      return false;
    };
    await ops.refuses(1, 'cancel it again', 'notifications cancel', id);
    expect(await stateOf(id)).toBe('started');
  });
});

describe('orders to many', () => {
  /** So many that wait for their next attempt. */
  const retrying = async (count: number) => {
    const ids: string[] = [];
    for (let nth = 0; nth < count; nth += 1) ids.push(await attempted(await stored()));
    await ops.database.sql`
      update deliveries set next_attempt_at = service_now() + interval '1 hour' where partner_id = ${partnerId} and attempts > 0`;
    return ids;
  };
  const given = () => ops.orders.map(({ notificationId }) => notificationId);
  const FAST = ['--per-second', '200'];

  test('to a partner or an endpoint: counted first, given with --yes, one row in the change log', async () => {
    const ids = await retrying(3);
    await stored();
    const counted = await ops.json('notifications retry-now --partner', partnerId);
    expect(counted).toEqual({ dry_run: true, order: 'retry-now', found: 3 });
    const dry = await ops.text('notifications retry-now --partner', partnerId, '--yes', '--dry-run');
    expect(dry).toMatch(/3 deliveries of.*no order was given: add --yes/s);
    expect(ops.orders).toEqual([]);

    const [endpoint_id = ''] = await ops.column('endpoint_id', 'webhooks list --partner', partnerId);
    const all = ['--endpoint', endpoint_id, '--yes', ...FAST];
    const paused = await ops.json('notifications pause', ...all);
    expect(paused).toEqual({ order: 'pause', found: 3, given: 3, passed_over: [] });
    expect(given()).toEqual(ids);
    // What is paused on purpose is not woken by an order to all; and what is not paused has nothing to resume.
    expect(await ops.json('notifications retry-now', ...all)).toMatchObject({ found: 0 });
    await ops.json('notifications resume', ids[1] ?? '');
    ops.orders.length = 0;
    const live = ['--partner', partnerId, '--environment', 'live', '--yes'];
    expect(await ops.json('notifications resume', ...live)).toMatchObject({ found: 0 });
    const resumed = await ops.text('notifications resume --partner', partnerId, '--yes', ...FAST);
    expect(resumed).toBe('resume: 2 of 2 given.\n');
    expect(given()).toEqual([ids[0], ids[2]]);
    const details = { partner_id: partnerId, environment: 'sandbox', endpoint_id, deliveries: 3 };
    const changes: { action: string }[] = await ops.json('changes list --partner', partnerId);
    expect(changes.filter(({ action }) => action !== 'rows.change')).toMatchObject([
      { action: 'notifications.resume', subject: partnerId },
      { action: 'notifications.resume', subject: ids[1] },
      { action: 'notifications.pause', subject: partnerId, details },
    ]);
  });

  test('to several ids: those that take none are passed over and named', async () => {
    const ids = await retrying(2);
    const ended = await attempted(await stored(), { state: 'failed', reason: 'exhausted' });
    const told = await ops.json('notifications retry-now', ...ids, ended, ...ids, ...FAST);
    expect(told).toEqual({
      order: 'retry-now',
      found: 3,
      given: 2,
      passed_over: [{ message: expect.stringContaining(`${ended} has ended (failed)`) }],
    });
    expect(given()).toEqual(ids);
    // One that is mistyped: nothing is ordered.
    await ops.refuses(2, 'ntf_x does not exist', 'notifications retry-now', ...ids, 'ntf_x');
    expect(given()).toHaveLength(2);
  });

  test('keep to their rate, stop in order when interrupted, and stand when Temporal goes away', async () => {
    await retrying(30);
    ops.onOrder = async () => {
      if (ops.orders.length === 3) ops.interruption.abort();
      return true;
    };
    const all = ['notifications', 'retry-now', '--partner', partnerId, '--yes'];
    // Ten seconds' worth at a time.
    await ops.refuses(1, 'Interrupted: 20 of 30 given', ...all, '--per-second', '2');
    expect(ops.orders).toHaveLength(3);
    ops.interruption = new AbortController();
    ops.onOrder = async () => true;
    const startedAt = performance.now();
    expect(await ops.json(...all, '--per-second', '20')).toMatchObject({ found: 10, given: 10 });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(450);
    ops.onOrder = unreachable;
    const pause = ['notifications', 'pause', '--partner', partnerId, '--yes', ...FAST];
    expect(await ops.text(...pause)).toMatch(/pause: 30 of 30 given. Temporal cannot be reached/);
  });

  test('need somebody to be for', async () => {
    for (const [said, ...args] of [
      ['Name notifications by their ids', 'pause'],
      ['Name notifications by their ids', 'pause', '--environment', 'live'],
      ['for orders without ids', 'pause', await stored(), '--partner', partnerId],
    ] as const)
      await ops.refuses(1, said, 'notifications', ...args);
  });
});

test('what is pending, held or has ended takes no orders; pending and held can be cancelled without Temporal', async () => {
  const pending = await stored();
  const held = await stored();
  const ended = await attempted(await stored(), { state: 'failed', reason: 'exhausted' });
  await putInState(ops.database, held, 'held');
  for (const verb of ['retry-now', 'pause', 'resume']) {
    await ops.refuses(1, 'is queued', 'notifications', verb, pending);
    await ops.refuses(1, 'is held', 'notifications', verb, held);
    await ops.refuses(1, /has ended \(failed\): resend it/, 'notifications', verb, ended);
  }
  await ops.refuses(1, 'has ended already', 'notifications cancel', ended);
  for (const id of [pending, held]) {
    await ops.json('notifications cancel', id);
    expect(await stateOf(id)).toBe('cancelled');
    expect(await ops.actionsOn(id)).toEqual(['notifications.cancel']);
  }
  expect(ops.orders).toEqual([]);
});

test('resends with the same event id, says when the limit forbids it, and writes it down', async () => {
  const id = await attempted(await stored(), { state: 'failed', reason: 'exhausted' });
  const { event_id: eventId } = await ops.json('notifications show', id);
  await ops.database.sql`update monthly_counts set delivered = 100 where partner_id = ${partnerId}`;
  await ops.refuses(1, /limit of 100 .* ends at \d{4}-\d\d-01T/, 'notifications resend', id);
  expect(await ops.actionsOn(id)).toEqual([]);
  await ops.database.sql`update monthly_counts set delivered = 0 where partner_id = ${partnerId}`;
  expect(await ops.json('notifications resend', id)).toEqual({
    notification_id: id,
    event_id: eventId,
    generation: 2,
    was: 'failed',
    state: 'queued',
  });
  expect(await ops.actionsOn(id)).toEqual(['notifications.resend']);
  await ops.refuses(1, 'under way', 'notifications resend', id);
});
