import { beginRecovery, recoverOne, resumeRecovery, TakenOver } from '../../db/notifications/recovery';
import { newPartner, putInState } from '../../testbed/notifications';
import { storeRow, type StoredRow } from '../support/partner-events';
import { useOps } from './run';

const ops = useOps();
let partnerId = '';

beforeEach(async () => {
  ({ partnerId } = await newPartner(ops.database, undefined, 'live'));
  ops.interruption = new AbortController();
});

function store({ hoursAgo = 1, ...row }: Partial<StoredRow> & { readonly hoursAgo?: number }) {
  const at = new Date(Date.now() - hoursAgo * 3_600_000);
  return storeRow(ops.database, { partnerId, environment: 'live', at, ...row });
}

const recover = (...more: string[]) => ['notifications', 'recover', '--partner', partnerId, ...more];
async function states() {
  const rows = await ops.database.sql<{ id: string; said: string }[]>`
    select notification_id as id, concat(state, ' ', generation) as said
    from notifications_now where partner_id = ${partnerId}`;
  return Object.fromEntries(rows.map(({ id, said }) => [id, said]));
}

test('without --yes it counts by what it would do, and sends nothing', async () => {
  for (const state of ['failed', 'failed', 'expired', 'held', 'cancelled', 'started', 'queued'] as const)
    await store({ state });
  await store({ state: 'failed', eventType: 'credit_application.test' });
  await store({ state: 'held', environment: 'sandbox' });
  await store({ state: 'delivered' });
  const deliveredBefore = await store({ state: 'failed' });
  const { sql } = ops.database;
  await sql`update notifications set delivered_at = now() where notification_id = ${deliveredBefore}`;
  await store({ state: 'failed', hoursAgo: 5 });
  const before = await states();
  const counted = await ops.json(...recover('--since', '3h'));
  expect(counted).toMatchObject({ dry_run: true, would_send: 4 });
  const counts = counted.counts.map(({ environment, state, plan, count }: Record<string, unknown>) =>
    [environment, state, plan, count].join(' '),
  );
  expect(new Set(counts)).toEqual(
    new Set([
      'live cancelled cancelled 1',
      'live expired send 1',
      'live failed send 2',
      'live failed test 1',
      'live held send 1',
      'live queued under_way 1',
      'live started under_way 1',
      'sandbox held no_endpoint 1',
    ]),
  );
  expect(await ops.text(...recover('--since', '3h'))).toContain('Nothing was sent: add --yes.');
  expect(await states()).toEqual(before);
});

test('sends what failed, expired or is held once more, at its rate, and writes each down', async () => {
  const sent = [];
  for (const state of ['failed', 'expired', 'held'] as const) sent.push(await store({ state }));
  const left = [await store({ state: 'cancelled' }), await store({ state: 'failed', hoursAgo: 30 })];
  const startedAt = performance.now();
  const done = await ops.json(...recover('--since', '3h', '--yes', '--per-second', '5'));
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(400);
  expect(done).toMatchObject({ state: 'done', found: 3, sent: 3, skipped: 0 });
  const now = await states();
  expect(sent.map((id) => now[id])).toEqual(['queued 2', 'queued 2', 'queued 2']);
  expect(left.map((id) => now[id])).toEqual(['cancelled 1', 'failed 1']);
  for (const id of sent) expect(await ops.actionsOn(id)).toEqual(['notifications.resend']);
  expect(await ops.actionsOn(done.recovery_id)).toEqual(['recoveries.finish', 'recoveries.begin']);
  const [priority] = await ops.database.sql`
    select distinct priority from notifications_now where notification_id in ${ops.database.sql(sent)}`;
  expect(priority).toEqual({ priority: 1 });
  await ops.refuses(1, 'is done', 'notifications recover --resume', done.recovery_id);
  expect((await ops.json('notifications recoveries --partner', partnerId))[0]).toMatchObject({ sent: 3 });
});

test('an interrupted one says how to continue, and continues without sending anything twice', async () => {
  const ids: string[] = [];
  for (let hoursAgo = 1; hoursAgo <= 5; hoursAgo += 1) ids.push(await store({ state: 'failed', hoursAgo }));
  const first = ops.run(recover('--since', '1d', '--yes', '--per-second', '2'));
  while (!Object.values(await states()).includes('queued 2')) await new Promise(setImmediate);
  ops.interruption.abort();
  const interrupted = await first;
  expect(interrupted.code).toBe(1);
  const [, recoveryId = ''] = /--resume (rcv_\w+)$/m.exec(interrupted.err) ?? [];
  const sent = Object.values(await states()).filter((state) => state === 'queued 2').length;
  expect(sent).toBeLessThan(5);

  // What was sent has failed once more meanwhile: that is for another recovery.
  for (const id of Object.keys(await states())) await putInState(ops.database, id, 'failed');
  ops.interruption = new AbortController();
  const resumed = await ops.json('notifications recover --resume', recoveryId, '--per-second', '200');
  expect(resumed).toMatchObject({ state: 'done', found: 5, sent: 5, skipped: 0 });
  const now = await states();
  expect(ids.map((id) => now[id]?.split(' ')[1])).toEqual(['2', '2', '2', '2', '2']);
  const verbs = ['finish', 'resume', 'interrupt', 'begin'].map((verb) => `recoveries.${verb}`);
  expect(await ops.actionsOn(recoveryId)).toEqual(verbs);
});

test('a process whose recovery was resumed by another can send nothing more', async () => {
  const notificationId = await store({ state: 'failed' });
  const { db } = ops.database;
  const span = { partnerId, environment: null, since: '2026-01-01T00:00Z', until: '2100-01-01T00:00Z' };
  const actor = 'tester';
  const old = await beginRecovery(db, { ...span, perSecond: 1, found: 1, actor });
  const { recoveryId, runner } = await resumeRecovery(db, old.recoveryId, { actor, perSecond: undefined });
  const item = { notificationId, application: '', sequence: 0 };
  await expect(recoverOne(db, { ...old, actor }, item)).rejects.toThrow(TakenOver);
  expect(await recoverOne(db, { recoveryId, runner, actor }, item)).toBe('sent');
  expect(await recoverOne(db, { recoveryId, runner, actor }, item)).toBe('skipped');
});

test('refuses a span that is empty, too long or not said', async () => {
  for (const [said, ...span] of [
    ['at most 30 days', '--since', '31d'],
    ['The span is empty', '--since', '1h', '--until', '2h'],
    ['Say --partner and --since'],
    ['It must be a span such as 36h', '--since', 'yesterday'],
  ] as const)
    expect((await ops.run(recover(...span))).err).toContain(said);
});
