import { openAttempt } from '../../db/notifications/attempt';
import { SENDS_PER_ENDPOINT } from '../../domain/delivery-now';
import { claimAll } from '../support/claims';
import { newPartner, putInState, storeStatus, storeTest } from '../../testbed/notifications';
import { attempt } from '../support/partner-events';
import { FAILED } from '../../testbed/values';
import { useOps } from './run';

const ops = useOps();
let partnerId = '';

beforeEach(async () => {
  ({ partnerId } = await newPartner(ops.database, ops.webhookKeys ?? ''));
});

const claim = () => claimAll(ops.database.db, { limit: 100, leaseMs: 60_000, slots: SENDS_PER_ENDPOINT });

/** A first attempt that was answered with 503, and the next in some time. */
const failedOnce = (notificationId: string) => attempt(ops.database, notificationId, FAILED, 300_000);

const store = async () => (await storeStatus(ops.database, { partnerId })).notificationId;
const show = (id: string) => ops.json('notifications show', id);
const showText = (id: string) => ops.text('notifications show', id);
const listText = (...more: string[]) => ops.text('notifications list --partner', partnerId, ...more);

test('one that waits for its next attempt says when, and what was answered last; without a worker it is overdue', async () => {
  const { notificationId } = await storeTest(ops.database, { partnerId });
  await failedOnce(notificationId);
  const shown = await show(notificationId);
  expect(shown).toMatchObject({
    state: 'started',
    due_at: null,
    now: { doing: 'waiting_for_attempt', until: shown.next_attempt_at },
    last_attempt: { http_status: 503, attempt_number: 1 },
  });
  expect(await showText(notificationId)).toMatch(
    /^Now: waits for its next attempt at \S+ \S+Z\.\nLast answer: attempt 1 at [^,]+, failed: http_status 503 in 7 ms\.\n/,
  );
  expect(await listText()).toMatch(/next attempt .*http_status 503/);
  await ops.database.sql`
    update deliveries set next_attempt_at = service_now() - interval '1 minute' where notification_id = ${notificationId}`;
  expect((await show(notificationId)).now.doing).toBe('attempt_overdue');
  expect(await showText(notificationId)).toContain(
    'no worker runs, Temporal is away, or WEBHOOK_KEYS lacks its key; the log',
  );
});

test('a paused one says by whom and since when, can be listed, and is counted at its endpoint', async () => {
  const { notificationId } = await storeTest(ops.database, { partnerId });
  await failedOnce(notificationId);
  await storeTest(ops.database, { partnerId });
  await ops.json('notifications pause', notificationId);
  const shown = await show(notificationId);
  expect(shown.now).toMatchObject({ doing: 'paused', since: shown.paused_at, paused_by: 'tester' });
  expect(await showText(notificationId)).toMatch(
    /^Now: paused since \S+ \S+Z by tester: notifications resume/,
  );
  const pausedIds = await ops.column('notification_id', 'notifications list --paused --partner', partnerId);
  expect(pausedIds).toEqual([notificationId]);
  expect(await listText('--paused')).toMatch(/paused \d+ \w+ by tester/);
  const [endpoint] = await ops.json('webhooks list --partner', partnerId, '--paused');
  const counts = { pending: 1, retrying: 0, paused: 1, held: 0 };
  expect(endpoint).toMatchObject({ ...counts, paused_since: shown.paused_at });
  await ops.json('notifications resume', notificationId);
  expect((await show(notificationId)).now.doing).toBe('waiting_for_attempt');
  expect(await ops.json('webhooks list --partner', partnerId, '--paused')).toEqual([]);
  const [resumed] = await ops.json('webhooks list --partner', partnerId);
  expect(resumed).toMatchObject({ pending: 1, retrying: 1, paused: 0, paused_since: null });
  expect(resumed.retrying_since).toEqual(expect.any(String));
});

test('a paused partner: what waits says by whom and since when, and a pause of single ones what it leaves', async () => {
  const [retried, waiting] = [await store(), await store()];
  await failedOnce(retried);
  expect(await ops.text('notifications pause', retried)).toContain(
    `Not paused: 1 deliveries of ${partnerId} that wait, 0 that are being sent.`,
  );
  const dry = await ops.text('notifications pause --partner', partnerId);
  expect(dry).toContain(`ops partners pause-deliveries ${partnerId} stops all.`);
  const paused = await ops.json('partners pause-deliveries', partnerId, '--environment', 'sandbox');
  expect(paused).toMatchObject({ paused: true, changed: true, waiting: 2, sending: 0 });
  const { now } = await show(waiting);
  expect(now).toMatchObject({ doing: 'partner_paused', paused_by: 'tester', since: expect.any(String) });
  expect(await showText(retried)).toMatch(
    /^Now: deliveries to its partner are paused since \S+ \S+Z by tester: partners resume/,
  );
  expect(await listText()).toMatch(/partner paused \d+ \w+ by tester/);
  const { deliveries_paused: pauses } = await ops.json('partners show', partnerId);
  expect(pauses).toEqual([{ environment: 'sandbox', paused_at: now.since, paused_by: 'tester' }]);
  expect(await ops.text('partners list --wide')).toMatch(/sandbox since \S+ \S+ by tester/);
  const resume = ['partners resume-deliveries', partnerId, '--environment', 'sandbox'];
  expect(await ops.json(...resume)).toMatchObject({ changed: true });
  expect((await show(waiting)).now.doing).toBe('due');
  expect(await ops.text(...resume)).toContain('were already running');
  // newPartner made it without ops.
  const actions = ['partners.resume-deliveries', 'partners.pause-deliveries', 'rows.change'];
  expect(await ops.actionsOn(partnerId)).toEqual(actions);
  await ops.refuses(2, 'required option', 'partners pause-deliveries', partnerId);
});

test('the summary has a row for each thing that deliveries do, with count, oldest and last answers', async () => {
  const [first = '', second = '', third = '', ...rest] = await Promise.all(Array.from({ length: 5 }, store));
  await failedOnce(first);
  await failedOnce(second);
  await openAttempt(ops.database.db, { notificationId: third, generation: 1 });
  const { notificationId: held } = await storeStatus(ops.database, { partnerId, environment: 'live' });
  await putInState(ops.database, held, 'held');
  const { doing, paused } = await ops.json('notifications summary --partner', partnerId);
  expect(paused).toEqual([]);
  const due = rest.toSorted()[0];
  expect(
    doing.toSorted((a: { doing: string }, b: { doing: string }) => (a.doing < b.doing ? -1 : 1)),
  ).toMatchObject([
    { environment: 'sandbox', doing: 'due', count: 2, oldest_notification_id: due, last_answers: [] },
    { environment: 'live', doing: 'held', reason: 'webhook_not_registered', count: 1 },
    { environment: 'sandbox', doing: 'sending', count: 1 },
    { doing: 'waiting_for_attempt', count: 2, last_answers: [{ answer: 'http_status 503', count: 2 }] },
  ]);
  await ops.json('partners pause-deliveries', partnerId, '--environment', 'sandbox');
  const text = await ops.text('notifications summary --partner', partnerId, '--environment', 'sandbox');
  expect(text).toMatch(/^Paused: P\d+ in sandbox since \S+ \S+Z by tester\.\n/);
  expect(text).toMatch(/partner_paused.*4 /);
  expect(text).toContain('http_status 503 (2)');
  // None of them is paused by itself.
  const listed = await ops.text('notifications list --paused --partner', partnerId);
  expect(listed).toMatch(/^Paused: P\d+ in sandbox since .* by tester\.\nNone/);
  // A row of one partner names it.
  expect(await ops.text('notifications summary')).toMatch(new RegExp(`${partnerId}.*partner_paused`));
  const all = await ops.json('notifications summary');
  expect(all.doing.find((one: { doing: string }) => one.doing === 'held').partners).toBeGreaterThanOrEqual(1);
});

test('a later event of an application names the earlier one that it waits for', async () => {
  const applicationId = `app_${partnerId}`;
  const first = await storeStatus(ops.database, { partnerId, applicationId, sequence: 1 });
  const second = await storeStatus(ops.database, { partnerId, applicationId, sequence: 2 });
  expect((await show(second.notificationId)).now).toMatchObject({
    doing: 'waiting_for_earlier',
    waits_for: first.notificationId,
    until: null,
  });
  await failedOnce(first.notificationId);
  const { now } = await show(second.notificationId);
  expect(now).toMatchObject({ doing: 'waiting_for_earlier', waits_for: first.notificationId });
  expect(now.until).toEqual(expect.any(String));
  const waits = `waits for the earlier event ${first.notificationId} of its application, until`;
  await ops.refuses(1, waits, 'notifications retry-now', second.notificationId);
  expect(await listText()).toContain(`after ${first.notificationId}`);
  // As the claim has it: a minute after the earlier one's first attempt it goes.
  await ops.database.sql`update deliveries set first_attempt_at = first_attempt_at - interval '2 minutes'
    where notification_id = ${first.notificationId}`;
  await ops.database
    .sql`update deliveries set due_at = service_now() where notification_id = ${second.notificationId}`;
  expect((await show(second.notificationId)).now.doing).toBe('due');
  expect((await claim()).claimed.map((one) => one.notificationId)).toContain(second.notificationId);
});

test("over its endpoint's share, and due again once a slot is free", async () => {
  const ids = await Promise.all(Array.from({ length: SENDS_PER_ENDPOINT + 1 }, store));
  const taken = (await claim()).claimed.map((one) => one.notificationId).filter((id) => ids.includes(id));
  expect(taken).toHaveLength(SENDS_PER_ENDPOINT);
  const [left = ''] = ids.filter((id) => !taken.includes(id));
  expect((await show(left)).now.doing).toBe('waiting_for_slot');
  expect(await showText(left)).toContain("over its endpoint's share");
  expect((await show(taken[0] ?? '')).now.doing).toBe('starting');
  await failedOnce(taken[0] ?? '');
  expect((await show(left)).now.doing).toBe('due');
});

test('held, since when; without an endpoint; and ended', async () => {
  const { sql } = ops.database;
  const held = await store();
  await putInState({ sql }, held, 'held');
  const shown = await show(held);
  expect(shown.now).toMatchObject({ doing: 'held', since: shown.held_at });
  const [endpoint] = await ops.json('webhooks list --partner', partnerId);
  expect(endpoint).toMatchObject({ held: 1, held_since: shown.held_at });
  const nowhere = await storeStatus(ops.database, { partnerId, environment: 'live' });
  expect((await show(nowhere.notificationId)).now.doing).toBe('without_endpoint');
  const ended = await storeTest(ops.database, { partnerId });
  await putInState({ sql }, ended.notificationId, 'failed');
  expect(await showText(ended.notificationId)).toMatch(/^Now: failed: exhausted since /);
});
