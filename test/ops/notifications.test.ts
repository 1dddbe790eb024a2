import { NOTIFICATION_STATES } from '../../domain/notification-states';
import { keepAnswer, recordAttempt } from '../../db/notifications/attempt';
import { newPartner, openedAttempt, putInState, storeTest } from '../support/notifications';
import { storeRow } from '../support/partner-events';
import { FAILED } from '../support/values';
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
  await recordAttempt(ops.database.db, opened, { outcome, address: '192.0.2.1' }, end);
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

describe('orders to a delivery under way', () => {
  test.each([
    ['retry-now', 'retryNow'],
    ['pause', 'pause'],
    ['resume', 'resume'],
    ['cancel', 'cancel'],
  ])('%s goes to its workflow and is logged', async (verb, order) => {
    const id = await attempted(await stored());
    expect(await ops.json('notifications', verb, id)).toEqual({ notification_id: id, generation: 1, order });
    expect(ops.orders).toEqual([{ notificationId: id, generation: 1, order }]);
    expect(await ops.actionsOn(id)).toEqual([`notifications.${verb}`]);
  });

  test('end with 3, name the setting, and are not logged when Temporal is away', async () => {
    const id = await attempted(await stored());
    ops.onOrder = unreachable;
    const away =
      'Temporal cannot be reached at 192.0.2.9:7233 [(]no answer within 1.5 s[)]: check TEMPORAL_ADDRESS.';
    for (const verb of ['retry-now', 'pause', 'resume', 'cancel'])
      await ops.refuses(3, away, 'notifications', verb, id);
    expect(await ops.actionsOn(id)).toEqual([]);
    expect(await stateOf(id)).toBe('started');
  });

  test('are refused when there is no workflow, but for cancel, which then ends the row itself', async () => {
    const id = await attempted(await stored());
    ops.onOrder = async () => false;
    await ops.refuses(1, 'no workflow at the moment', 'notifications pause', id);
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
  const given = () => ops.orders.map(({ notificationId, order }) => [notificationId, order]);
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
    expect(given()).toEqual(ids.map((id) => [id, 'pause']));
    // What is paused on purpose is not woken by an order to all; and what is not paused has nothing to resume.
    expect(await ops.json('notifications retry-now', ...all)).toMatchObject({ found: 0 });
    await ops.json('notifications resume', ids[1] ?? '');
    ops.orders.length = 0;
    const live = ['--partner', partnerId, '--environment', 'live', '--yes'];
    expect(await ops.json('notifications resume', ...live)).toMatchObject({ found: 0 });
    const resumed = await ops.text('notifications resume --partner', partnerId, '--yes', ...FAST);
    expect(resumed).toBe('resume: 2 of 2 given.\n');
    expect(given()).toEqual([ids[0], ids[2]].map((id) => [id, 'resume']));
    const details = { partner_id: partnerId, environment: 'sandbox', endpoint_id, deliveries: 3 };
    expect(await ops.json('changes list --partner', partnerId)).toMatchObject([
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
    expect(given()).toEqual(ids.map((id) => [id, 'retryNow']));
    // One that is mistyped: nothing is ordered.
    await ops.refuses(2, 'ntf_x does not exist', 'notifications retry-now', ...ids, 'ntf_x');
    expect(given()).toHaveLength(2);
  });

  test('keep to their rate, stop in order when interrupted, and stop when Temporal goes away', async () => {
    await retrying(3);
    ops.onOrder = async () => {
      if (ops.orders.length === 2) ops.interruption.abort();
      return true;
    };
    const all = ['notifications', 'retry-now', '--partner', partnerId, '--yes'];
    await ops.refuses(1, 'Interrupted: 2 of 3 given', ...all, ...FAST);
    ops.interruption = new AbortController();
    ops.onOrder = async () => true;
    const startedAt = performance.now();
    await ops.json(...all, '--per-second', '10');
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(200);
    ops.onOrder = unreachable;
    await ops.refuses(3, '0 of 3 given before this', ...all, ...FAST);
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
